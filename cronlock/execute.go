package cronlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// ErrOverlap says that a run has not begun because an earlier run of the job goes on.
var ErrOverlap = errors.New("holdfast: cronlock: an earlier run goes on")

// execute runs a claimed tick, alone if the job says so. patience bounds the waiting for an earlier run.
func (j *job) execute(attempt *core.Attempt, tick time.Time, patience context.Context) error {
	run := Run{
		Job: j.name, Tick: tick, Replica: j.config.replica, Attempt: attempt.Number(), Token: attempt.Token(),
		Started: attempt.Began(),
	}
	if run.Attempt > j.config.attempts {
		_ = attempt.Hold(patience, "given up after too many attempts")
		j.skip(tick, Taken, nil)
		return nil
	}
	lease, err := j.alone(patience, attempt)
	if err != nil {
		reason := Unavailable
		if errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable) {
			reason, err = Overlapping, fmt.Errorf("%w: %w", ErrOverlap, err)
		}
		run.Outcome = Skipped
		_ = attempt.Complete(patience, run.encode())
		j.skip(tick, reason, err)
		return err
	}
	base := j.config.context
	if lease != nil {
		held, cancel := both(base, lease)
		defer cancel()
		defer func() { _ = lease.Unlock(context.WithoutCancel(patience)) }() // it frees itself otherwise
		base = held
	}
	ctx, cancel := attempt.Bind(base)
	defer cancel()
	return j.call(ctx, run, func(run Run) {
		if err := attempt.Complete(context.WithoutCancel(ctx), run.encode()); err != nil {
			j.config.logger.Warn("holdfast: cronlock: run not recorded", "job", j.name, "tick", tick, "error", err)
		}
	})
}

// both returns a context that ends with ctx and with the lease.
func both(ctx context.Context, lease *core.Lease) (context.Context, context.CancelFunc) {
	held, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(lease.Context(), func() { cancel(context.Cause(lease.Context())) })
	return held, func() { stop(); cancel(nil) }
}

// alone takes the lock that keeps runs of different ticks apart, nil if they may overlap.
func (j *job) alone(patience context.Context, attempt *core.Attempt) (*core.Lease, error) {
	if j.config.overlap == overlapAllow {
		return nil, nil
	}
	mutex := j.locks.Mutex(groupOf(j.name), append(j.config.lock, core.WithMinHold(j.config.minHold))...)
	switch {
	case j.config.overlap == overlapWait:
		return mutex.Lock(patience, core.WithWait(j.config.wait))
	case attempt.Number() > 1:
		// The runner before may have renewed its lock a moment after its claim.
		return mutex.Lock(patience)
	}
	return mutex.TryLock(patience)
}

// call calls the function of the job and hands the finished run on, however that ended. A panic goes on.
func (j *job) call(ctx context.Context, run Run, finish func(Run)) (err error) {
	run.Outcome = Running
	ctx = context.WithValue(ctx, runKey{}, run)
	began, returned := time.Now(), false
	defer func() {
		run.Took = time.Since(began)
		run.Outcome = outcome(ctx, returned, err)
		finish(run)
		if j.config.hooks.Finished != nil {
			j.config.hooks.Finished(context.WithoutCancel(ctx), run, err)
		}
	}()
	if j.config.hooks.Started != nil {
		j.config.hooks.Started(ctx, run)
	}
	err = j.fn(ctx)
	returned = true
	if err != nil {
		j.config.logger.Warn("holdfast: cronlock: job failed", "job", j.name, "tick", run.Tick, "error", err)
	}
	return err
}

func outcome(ctx context.Context, returned bool, err error) Outcome {
	switch {
	case !returned:
		return Panicked
	case err == nil:
		return Success
	case ctx.Err() != nil:
		return Interrupted
	}
	return Failed
}
