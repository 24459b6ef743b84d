package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// AskTimeout is how long Redis may take to answer the first request of a job. It also bounds the first request of other
// guards that wait for longer than that.
//
// It is so long because neither a stall of Redis nor the round trips of a new connection to a slow one may count as an outage.
const AskTimeout = 5 * time.Second

// ShortestWait is the shortest time but 0 that [core.WithWait] takes.
const ShortestWait = time.Millisecond

// Patience is how long a guard waits for a lock or a record.
type Patience struct {
	// Wait bounds the waiting for another holder; less than [ShortestWait] asks once.
	Wait time.Duration
	// Ask bounds the time that Redis may take to answer the first request, even if Wait is shorter.
	Ask time.Duration
	// FailOpen is true if the guard lets its function run in an outage.
	FailOpen bool
}

// Begin calls begin to ask Redis, and then once more to wait. It returns the last error. begin asks Redis, and waits for
// another holder for the given time; with 0 it asks once. If an answer says that another holder is in the way, and
// Redis does not answer the last call, Begin returns that answer. So a busy lock never passes for an outage. The error of
// ctx is added if ctx has ended meanwhile.
//
// With one call whose wait is below the round trip, a healthy Redis could never answer in time. With one call of a guard that fails
// open, the error of a wait that ends in an outage would not tell whether Redis has answered before, and the other holder may still run.
func (p Patience) Begin(ctx context.Context, begin func(ctx context.Context, wait time.Duration) error) error {
	if p.Wait >= p.Ask && !p.FailOpen {
		return begin(ctx, p.Wait)
	}
	began := time.Now()
	first := p.first(ctx, begin)
	rest := p.Wait - time.Since(began)
	if !Busy(first) || rest < ShortestWait || ctx.Err() != nil {
		return first
	}
	err := begin(ctx, rest)
	switch {
	case !IsOutage(err):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", first, ctx.Err())
	}
	return first
}

// Lock takes a lock by [Patience.Begin].
func (p Patience) Lock(ctx context.Context, lock *core.Lock) (lease *core.Lease, err error) {
	err = p.Begin(ctx, func(ctx context.Context, wait time.Duration) (err error) {
		lease, err = acquire(ctx, lock, wait)
		return err
	})
	return lease, err
}

func acquire(ctx context.Context, lock *core.Lock, wait time.Duration) (*core.Lease, error) {
	if wait < ShortestWait {
		return lock.TryLock(ctx)
	}
	return lock.Lock(ctx, core.WithWait(wait))
}

// retryInterval lies between two calls of first.
const retryInterval = 100 * time.Millisecond

// first asks once. It asks again after a call that has failed at once, as during a restart of Redis, for as long as the guard
// waits.
//
// Each call has the whole time, because a call that is cancelled and made again begins again with its connection. If Redis were
// slower than each of the calls, none of them would ever be answered.
func (p Patience) first(ctx context.Context, begin func(ctx context.Context, wait time.Duration) error) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, max(p.Ask, min(p.Wait, AskTimeout)))
	defer cancel()
	for {
		err := begin(ctx, 0)
		if !IsOutage(err) || time.Since(began)+retryInterval >= p.Wait || !Pause(ctx, retryInterval) {
			return err
		}
	}
}

// Pause waits, and returns false if ctx ended meanwhile.
func Pause(ctx context.Context, interval time.Duration) bool {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Busy returns true if Redis itself has replied that another holder has the lock or runs for the record.
func Busy(err error) bool {
	return (errors.Is(err, core.ErrNotAcquired) || errors.Is(err, core.ErrInProgress)) &&
		!errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrLeaseLost)
}

// notServing are the answers with which a server says that it serves no client at the moment: it starts, has lost its
// master or its Cluster, is no master any more, or has too many connections. They pass with the outage. Requests cannot
// cause them, unlike BUSY, which a script on the keys of requests may bring about.
//
// MOVED, ASK and READONLY come with [core.ErrUnavailable] only if they pass. Otherwise they are [core.ErrMisconfigured].
var notServing = []string{
	"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "READONLY", "max number of clients",
}

// IsOutage reports whether err means that Redis could not be asked, which is all that opens a guard that fails open.
//
// Any other answer may last, or may be what a client has brought about. With a full Redis (OOM, MISCONF), too many open files
// of this process, or no free connection in its pool, one user's requests would open the gate for all. What does not speak the
// protocol of Redis is no Redis that is unreachable. A missing right, a wrong password or the wrong kind of
// client would leave it open until it is noticed. NOREPLICAS and [core.ErrNotReplicated] are the safety that was asked for. Of
// [core.ErrUndecided] Redis has answered, and the database has not.
func IsOutage(err error) bool {
	return errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrNotReplicated) && !errors.Is(err, core.ErrMisconfigured) &&
		!errors.Is(err, core.ErrUndecided) &&
		!exhausted(err) && !notRedis(err) && !refusedByRedis(err)
}

// exhausted reports whether this process has no connection left, because its pool is in use or it has too many open files.
func exhausted(err error) bool {
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// notRedis reports whether what has answered does not speak the protocol of Redis. go-redis has no type for these errors.
func notRedis(err error) bool {
	text := err.Error()
	return strings.Contains(text, "redis: can't parse ") || strings.Contains(text, "redis: invalid reply")
}

// refusedByRedis reports whether a server has answered with an error other than [notServing]. It looks at the answers
// of all servers, if there are several.
func refusedByRedis(err error) bool {
	switch e := err.(type) {
	case redis.Error:
		return !slices.ContainsFunc(notServing, func(prefix string) bool { return redis.HasErrorPrefix(e, prefix) })
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), refusedByRedis)
	case interface{ Unwrap() error }:
		return refusedByRedis(e.Unwrap())
	}
	return false
}
