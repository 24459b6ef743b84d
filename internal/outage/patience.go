package outage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// AskTimeout is how long Redis may take to answer the first request of a guard that has no option for that.
//
// Why a second: a wait that is shorter than the round trip must not pass for an outage, nor a short stall of Redis.
const AskTimeout = time.Second

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

// Begin calls begin once or twice, and returns its last error. begin asks Redis, and waits for another holder as long as it
// is told; with 0 it asks once. If the first call says that another holder is in the way, and Redis does not answer the
// second one, Begin returns what the first one said. So a busy lock never passes for an outage.
//
// Why two calls if the wait is shorter than Ask: with a wait below the round trip, a healthy Redis could never answer in
// time. Why two calls if the guard fails open: the error of a wait that ends in an outage does not tell whether Redis has
// answered before. The other holder may still run then.
func (p Patience) Begin(ctx context.Context, begin func(ctx context.Context, wait time.Duration) error) error {
	short := p.Wait < p.Ask
	if !short && !p.FailOpen {
		return begin(ctx, p.Wait)
	}
	began := time.Now()
	first := p.first(ctx, begin)
	rest := p.Wait - time.Since(began)
	switch {
	case rest < ShortestWait || ctx.Err() != nil:
		return first
	case Is(first) && !short:
		return begin(ctx, rest) // which waits for some seconds for the end of an outage
	case !Busy(first):
		return first
	}
	if err := begin(ctx, rest); !Is(err) || ctx.Err() != nil {
		return err
	}
	return first
}

// Lock takes a lock by [Patience.Begin].
func (p Patience) Lock(ctx context.Context, lock core.Locker, opts ...core.LockOption) (lease *core.Lease, err error) {
	err = p.Begin(ctx, func(ctx context.Context, wait time.Duration) (err error) {
		if wait < ShortestWait {
			lease, err = lock.TryLock(ctx, opts...)
		} else {
			lease, err = lock.Lock(ctx, append(slices.Clip(opts), core.WithWait(wait))...)
		}
		return err
	})
	return lease, err
}

// first asks once.
func (p Patience) first(ctx context.Context, begin func(ctx context.Context, wait time.Duration) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.Ask)
	defer cancel()
	return begin(ctx, 0)
}

// Busy returns true if Redis has said that another holder has the lock or runs for the record.
func Busy(err error) bool {
	return (errors.Is(err, core.ErrNotAcquired) || errors.Is(err, core.ErrInProgress)) && !errors.Is(err, core.ErrUnavailable)
}
