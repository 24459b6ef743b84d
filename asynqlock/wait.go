package asynqlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// asking asks Redis for a lock or an attempt, and waits for so long.
type asking = func(ctx context.Context, wait time.Duration) error

// turn asks Redis when it is the task's turn, and may wait, within bounds. The task takes one of the workers that may wait only
// when another one is in the way. On the last attempt an outage is waited for too, unless the task may run without Redis: it
// would have no time left for that.
//
// If Redis has said that another task is in the way, and does not answer after that, the error is what Redis has said, because the
// other task still runs. So a guard that fails open does not take this for an outage. Nor is a healthy Redis down for a wait below
// the round trip.
func (v *visit) turn(ctx context.Context, ask asking) error {
	if v.line != nil && v.task.ID != "" {
		v.enter()
	}
	if begin := ask; v.lined {
		ask = func(ctx context.Context, wait time.Duration) error { return v.inTurn(ctx, wait, begin) }
	}
	err := v.answer(ctx, ask)
	if v.taken != nil && guards.IsOutage(err) && v.ctx.Err() == nil {
		return v.taken
	}
	return err
}

func (v *visit) answer(ctx context.Context, ask asking) error {
	err := v.askOnce(ctx, ask)
	if err == nil || !v.mayWait(err) {
		return err
	}
	stand, seated := workersOf(v.ctx).sit(v.ask.KeyHash, v.task.last())
	defer stand()
	v.seated = seated
	for v.patience() > 0 {
		if err = v.askOnce(ctx, ask); err == nil || !errors.Is(err, core.ErrUnavailable) || !v.mayWait(err) {
			return err
		}
		if !sleep(ctx, min(time.Second, v.patience())) {
			return err
		}
	}
	return err
}

func (v *visit) askOnce(ctx context.Context, ask asking) error {
	wait := v.patience()
	ctx, cancel := context.WithTimeout(ctx, wait+v.AskTimeout)
	defer cancel()
	err := ask(ctx, wait)
	if isBusy(err) {
		v.taken = err
	}
	return err
}

// patience returns for how long the task may wait yet: for half of its time at most, because its handler needs the rest.
// A task that asynq would archive if it came back deferred waits for as long as that: asynq asks only then whether that
// is a failure.
func (v *visit) patience() time.Duration {
	limit := v.Wait
	if v.waits > 0 {
		limit = v.waits
	}
	until, bounded := v.until()
	switch left := (until.Sub(v.came)/2 - time.Since(v.came)).Truncate(guards.ShortestWait); {
	case !v.seated:
		return 0
	case !bounded:
		return limit
	case v.task.last():
		return max(left, 0)
	default:
		return max(min(limit, left), 0)
	}
}

// mayWait reports whether the task may wait for what is in its way: another task, or on its last attempt Redis.
func (v *visit) mayWait(err error) bool {
	if isBusy(err) {
		return v.Wait > 0 || v.waits > 0 || v.task.last()
	}
	_, bounded := v.until()
	if !errors.Is(err, core.ErrUnavailable) || !v.task.last() || !bounded {
		return false
	}
	switch {
	case !v.FailOpen || v.taken != nil:
		return true
	case v.Within(v.ctx, v.ask.Name):
		return false
	}
	known := v.Known(v.ask, err)
	return known != nil && !errors.Is(known, core.ErrCompleted) // that needs no Redis either
}

// sleep reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
