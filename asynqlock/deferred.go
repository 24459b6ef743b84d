package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// DeferredError says that asynq has to redeliver a task for a reason outside of the task: another one with its key
// runs, its lease was lost, or Redis cannot be asked. asynq calls that a failure and uses up a retry, unless you use
// [Configure]. The wrapped error is the reason: [core.ErrInProgress] and [core.ErrNotAcquired], [core.ErrLeaseLost],
// [core.ErrUnavailable].
type DeferredError struct {
	// KeyHash is the hash of the task's key.
	KeyHash string
	// RetryIn is the delay before the redelivery.
	RetryIn time.Duration
	// Ahead is the number of tasks before it in the line, including the running one, see [WithLine].
	Ahead int
	// Err is the reason.
	Err error
}

// Error returns the reason and the delay.
func (e *DeferredError) Error() string {
	return fmt.Sprintf("%s for %v: %v", deferredText, e.RetryIn.Round(time.Millisecond), e.Err)
}

// deferredText distinguishes a deferred task from a failed one, in asynq's record of its last error.
const deferredText = "holdfast: asynqlock: task deferred"

// Unwrap returns the reason.
func (e *DeferredError) Unwrap() error { return e.Err }

// shortestDelay keeps a task from coming again while asynq still works at its last run: the queue counts in whole
// seconds, and its heartbeat takes two quick runs of a task for one.
const shortestDelay = time.Second

// deferral makes the error of a task that has to come again. Those who were deferred together do not come together again.
func (v *visit) deferral(reason error) *DeferredError {
	e := &DeferredError{
		KeyHash: v.ask.KeyHash, RetryIn: max(v.retryIn/2+rand.N(v.retryIn), shortestDelay), Ahead: v.ahead, Err: reason,
	}
	if v.line != nil {
		e.RetryIn = v.line.delay(v, e.RetryIn)
	}
	if _, made := v.ctx.Value(taskKey{}).(asynq.TaskInfo); !made && workersOf(v.ctx) == nil {
		v.Event(v.ctx, slog.LevelWarn, "configure", "holdfast: asynqlock: a deferred task uses up a retry: pass asynq's Config to "+
			"Configure", v.ask.Work, nil, v.attrs()...)
	}
	if guards.Busy(reason) && isLast(v.task) {
		v.Event(v.ctx, slog.LevelWarn, "archived", "holdfast: asynqlock: a task on its last attempt may not wait any longer, and "+
			"asynq archives it: give tasks a retry", v.ask.Work, nil, v.attrs()...)
	}
	return e
}

// asking asks Redis for a lock or an attempt, and waits for so long.
type asking = func(ctx context.Context, wait time.Duration) error

// turn asks Redis when it is the task's turn, and may wait, within bounds. The task takes one of the workers that may wait only
// when another one is in the way. On the last attempt an outage is waited for too, unless the task may run without Redis: it
// would have no time left for that.
//
// If Redis replied that another task is in the way, and does not reply after that, the error is that reply, because the
// other task still runs. So a guard that fails open does not take this for an outage. Nor is a healthy Redis down for a wait below
// the round trip.
func (v *visit) turn(ctx context.Context, ask asking) error {
	if v.line != nil && v.task.ID != "" {
		v.enter()
	}
	err := v.asked(ctx, ask, 0)
	if err != nil && v.mayWait(err) {
		err = v.wait(ctx, ask, err)
	}
	if v.taken != nil && guards.IsOutage(err) && v.ctx.Err() == nil {
		return v.taken
	}
	return err
}

// wait occupies a worker while another task is in the way, or Redis does not answer.
func (v *visit) wait(ctx context.Context, ask asking, err error) error {
	stand, ok := workersOf(v.ctx).sit(isLast(v.task))
	if !ok {
		return err
	}
	defer stand()
	for v.patience() > 0 {
		err = v.asked(ctx, ask, v.patience())
		if err == nil || !errors.Is(err, core.ErrUnavailable) || !v.mayWait(err) || !guards.Pause(ctx, min(time.Second, v.patience())) {
			return err
		}
	}
	return err
}

func (v *visit) asked(ctx context.Context, ask asking, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait+v.AskTimeout)
	defer cancel()
	err := v.notYet
	if err == nil || wait > 0 {
		err = ask(ctx, wait)
	}
	if guards.Busy(err) {
		v.taken = err
	}
	return err
}

// patience returns for how long the task may wait yet: for half of its time at most, because its handler needs the rest.
// A task that asynq would archive if it came back deferred waits for as long as that: asynq asks only then whether that
// is a failure.
func (v *visit) patience() time.Duration {
	until, bounded := v.until()
	if !bounded {
		return v.waits
	}
	left := max((until.Sub(v.came)/2 - time.Since(v.came)).Truncate(guards.ShortestWait), 0)
	if isLast(v.task) {
		return left
	}
	return min(v.waits, left)
}

// mayWait reports whether the task may wait for what is in its way: another task, or on its last attempt Redis.
func (v *visit) mayWait(err error) bool {
	if guards.Busy(err) {
		return v.waits > 0 || isLast(v.task)
	}
	_, bounded := v.until()
	if !errors.Is(err, core.ErrUnavailable) || !isLast(v.task) || !bounded {
		return false
	}
	if !v.FailOpen || v.taken != nil {
		return true
	}
	known := v.Known(v.ctx, v.ask, err)
	return known != nil && !errors.Is(known, core.ErrCompleted) // that needs no Redis either
}
