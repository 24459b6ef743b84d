package core

import (
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/quorum"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Redlock makes locks on several independent Redis masters at once. A lock is held if a majority of them has granted
// it. So it stays available, and exclusive, while any minority is down, frozen or cut off. Make one per process and
// share it. A Redlock is safe for concurrent use.
//
// docs/redlock.md says what it needs and what it cannot do. In short: a server that loses its data when it restarts
// must not vote before the longest TTL has passed ([WithRestartDelay]), or has to keep an append-only file with appendfsync
// always. Only its token stops a holder that is paused past its lease, as with one server.
//
// Source: the distributed locks page of Redis's documentation.
type Redlock struct {
	*engine
	servers []*server
	quorum  *quorum.Strategy
}

// NewRedlock returns a Redlock on the masters of nodes: three, five or another odd number. Each is an independent
// server that replicates to no other of them. The caller closes the go-redis clients, after the Redlock.
//
// NewRedlock asks the servers for their run ids, for two seconds at most, and refuses two clients of one server. It
// checks servers that do not reply again before their votes count. It also refuses clients of a Cluster, of a Ring and of
// Sentinel. It fails with [ErrInvalidOption].
func NewRedlock(nodes []redis.UniversalClient, opts ...Option) (*Redlock, error) {
	config := newClientConfig(opts)
	if err := errors.Join(checkNodes(nodes), config.lock.check(nodes), checkPrefix(config.prefix)); err != nil {
		return nil, err
	}
	e := newEngine(config, nodes, redlockDrift)
	r := &Redlock{engine: e}
	var instances []*script.Instance
	for _, rdb := range nodes {
		s := newServer(e, rdb)
		r.servers, instances = append(r.servers, s), append(instances, s.Instance)
	}
	r.quorum = quorum.New(&quorum.Environment{
		Background: e.work(), IDs: &e.ids, Prefix: e.prefix, Logger: e.logger,
		NodeTimeout: e.nodeTimeout, RestartDelay: e.lock.restartDelay, TrustedUntil: e.renewer.TrustedUntil,
		SameServer: func(a, b int) error {
			return invalidOption("NewRedlock: nodes %d and %d are the same server", a, b)
		},
		TooManyPending: e.warnPending, Closed: ErrClosed,
	}, instances)
	if err := r.quorum.Introduce(); err != nil {
		e.stop()
		return nil, errors.Unwrap(err) // two nodes are the same server
	}
	return r, nil
}

// checkNodes refuses what cannot be a set of independent masters. It refuses clients of Sentinel because after a failover their
// server may lack the lock, and would vote at once, having been up for a long time.
func checkNodes(nodes []redis.UniversalClient) error {
	if len(nodes) < 3 || len(nodes)%2 == 0 {
		return invalidOption("NewRedlock: %d nodes, an odd number from 3 on is needed", len(nodes))
	}
	for i, node := range nodes {
		if isNil(node) {
			return invalidOption("NewRedlock: node %d is nil", i+1)
		}
		switch node.(type) {
		case *redis.ClusterClient, *redis.Ring:
			return invalidOption("NewRedlock: node %d is a %T, which leads to more than one server", i+1, node)
		}
		if rdb, ok := node.(*redis.Client); ok && rdb.Options().Addr == transport.SentinelAddr {
			return invalidOption("NewRedlock: node %d is a client of Sentinel, whose replica may not know the lock after a failover", i+1)
		}
		for j, other := range nodes[:i] {
			if reflect.ValueOf(node).Comparable() && node == other {
				return invalidOption("NewRedlock: node %d is node %d again", i+1, j+1)
			}
		}
	}
	return nil
}

// redlockDrift is taken off every TTL, for the clocks of several servers: a hundredth, and 2 ms for the rounding of
// short ones.
func redlockDrift(ttl time.Duration) time.Duration { return 2*time.Millisecond + ttl/100 }

// Mutex returns a reentrant lock on a majority of the servers. Mutex does no I/O; Lock and TryLock report a wrong name
// or option.
//
// It costs two round trips, because the token is written to a majority before the lease is returned. So tokens grow
// whatever minority fails. Without a majority, Lock and TryLock fail with [ErrUnavailable], and leases end at their
// ValidUntil.
//
// On each server it has the state of [Client.Mutex], so it excludes every lock of that name there. An owner of [WithOwner] that
// holds another strategy's lock of that name on so many servers that no majority is left gets [ErrUpgrade].
func (r *Redlock) Mutex(name string, opts ...LockOption) *Lock {
	return &r.engine.newLock(name, r.quorum, opts).lock
}

// Close is [Client.Close] for all servers.
func (r *Redlock) Close() error {
	var err error
	r.engine.closed.Do(func() {
		err = r.engine.close()
		var all sync.WaitGroup
		for _, s := range r.servers {
			all.Go(s.close)
		}
		all.Wait()
	})
	return err
}
