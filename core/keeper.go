package core

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/pubsub"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/core/internal/waiters"
)

// keeper keeps leases: it is what a [Client] and a [Redlock] have in common, whatever servers their locks live on.
type keeper struct {
	clientConfig
	ids          lockscript.IDs
	clientNumber string // of this client, see internal/pubsub/wake_one.go
	now          clock.Clock
	redis        []redis.UniversalClient // where the locks live

	renewer     *keepalive.Renewer[lockscript.Hold]
	waitLists   *waiters.Lists
	heartbeats  *waiters.Heartbeats // of waiters in queues; nil for a Redlock, which has none
	waiterLimit *waiters.Limit

	acquisitions sync.Pool // of *request

	operations *lifecycle.Operations
	base       context.Context // of work in the background; ends when Close has waited long enough
	stop       context.CancelFunc

	renewals renewalLog
	overdue  sync.Once // too many holds wait to be released
}

// newKeeper makes a keeper whose leases are trusted for their TTL less the drift.
func newKeeper(config clientConfig, rdbs []redis.UniversalClient, drift func(ttl time.Duration) time.Duration) *keeper {
	k := &keeper{
		clientConfig: config,
		ids:          lockscript.IDs{Client: uuid.NewString()},
		now:          clock.New(),
		redis:        rdbs,
		waitLists:    waiters.NewLists(),
		waiterLimit:  waiters.NewLimit(config.maxWaiters),
		operations:   lifecycle.New(),
	}
	k.clientNumber = pubsub.NewClientNumber()
	k.acquisitions.New = func() any { return new(acquisition) }
	k.base, k.stop = context.WithCancel(context.Background())
	k.renewer = keepalive.NewRenewer[lockscript.Hold](k.now, drift)
	return k
}

// nowFor reads the clock if wanted is true, and returns 0 otherwise. Why: to read a clock that continues in a suspend is a
// system call.
func (k *keeper) nowFor(wanted bool) clock.Instant {
	if !wanted {
		return 0
	}
	return k.now()
}

// background runs work that outlives its caller but not the keeper. It reports false if that has come to rest.
func (k *keeper) background(work func(ctx context.Context)) bool {
	if !k.operations.StartInternal() {
		return false
	}
	go func() {
		defer k.operations.Finish()
		work(k.base)
	}()
	return true
}

// lost ends a lease that was not unlocked. Its hold may still be in Redis, if the answer to a renewal was late or
// lost, so it is taken out, unless it is left to run out.
func (k *keeper) lost(l *Lease, cause error) {
	l.end.Set(cause)
	if !leftToExpire(cause) {
		k.releaseInBackground(l.protocol, l.outstanding(), lockscript.HeldByCaller)
	}
	k.report(l, cause)
}

// hasOneServer reports whether locks live on one server or Cluster, whose executor knows transport.DetachedContext.
func (k *keeper) hasOneServer() bool { return len(k.redis) == 1 }

// work is what commands need of this client beyond the call that started them.
func (k *keeper) work() transport.Background {
	return transport.Background{Now: k.now, Operations: k.operations, Go: k.background, Recovered: k.recovered}
}
