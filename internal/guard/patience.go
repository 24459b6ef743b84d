package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// AskTimeout is how long Redis may take to answer the first request of a job. It also bounds the first request of other
// guards that wait for longer than that.
//
// Why so long: neither a stall of Redis, nor the round trips of a new connection to a slow one, must pass for an outage.
const AskTimeout = 5 * time.Second

// ShortestWait is the shortest time but 0 that [core.WithWait] takes.
const ShortestWait = time.Millisecond

// UnitHint returns the end of an error about a duration that is too short to be meant: a number without a unit is one of
// nanoseconds. It returns "" for any other duration.
func UnitHint(d time.Duration) string {
	switch {
	case d <= 0 || d > 100*time.Microsecond: // a longer one was computed
		return ""
	case d < 1000:
		return fmt.Sprintf("; is the unit missing, did you mean %d*time.Second?", int64(d))
	}
	return fmt.Sprintf("; is the unit missing, did you mean %d*time.Millisecond or %[1]d*time.Second?", int64(d))
}

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
// another holder as long as it is told; with 0 it asks once. If an answer says that another holder is in the way, and
// Redis does not answer the last call, Begin returns that answer. So a busy lock never passes for an outage. The error of
// ctx is added if ctx has ended meanwhile.
//
// Why two calls if the wait is shorter than Ask: with a wait below the round trip, a healthy Redis could never answer in
// time. Why two calls if the guard fails open: the error of a wait that ends in an outage does not tell whether Redis has
// answered before. The other holder may still run then.
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
func (p Patience) Lock(ctx context.Context, lock *core.Lock, opts ...core.LockOption) (lease *core.Lease, err error) {
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

// retryInterval lies between two calls of first.
const retryInterval = 100 * time.Millisecond

// first asks once. It asks again after a call that has failed at once, as during a restart of Redis, for as long as the guard
// waits.
//
// Why each call has the whole time: a call that is cancelled and made again begins again with its connection. If Redis is
// slower than each of the calls, none of them is ever answered.
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

// Busy returns true if Redis has said that another holder has the lock or runs for the record.
func Busy(err error) bool {
	return (errors.Is(err, core.ErrNotAcquired) || errors.Is(err, core.ErrInProgress)) && !errors.Is(err, core.ErrUnavailable)
}
