package cronlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// ErrOverlap says that a run has not begun because an earlier run of the job goes on.
var ErrOverlap = errors.New("holdfast: cronlock: an earlier run goes on")

// execute runs a claimed tick, alone if the job says so. base is what the context of the run descends from, patience
// bounds the waiting for an earlier run, and attempts says how often the tick may be tried.
func (j *job) execute(
	base, patience context.Context, attempt *core.Attempt, tick time.Time, attempts int,
) error {
	run := Run{
		Job: j.name, Tick: tick, Replica: j.config.replica, Attempt: attempt.Number(), Token: attempt.Token(),
		Started: attempt.Began(),
	}
	run.Deadline, _ = patience.Deadline()
	if run.Attempt > attempts {
		_ = attempt.Hold(patience, "given up after too many attempts")
		j.skip(tick, Taken, nil)
		return nil
	}
	held := attempt.Context()
	if j.config.overlap != overlapAllow {
		lease, err := j.alone(patience, run.Attempt > 1)
		switch {
		case err == nil:
			defer func() { _ = lease.Unlock(context.WithoutCancel(patience)) }() // it frees itself otherwise
			// Its token rises from run to run as they follow each other. That of the attempt is as old as the claim,
			// which may have waited while a later tick ran.
			held, run.Token = lease.Context(), lease.Token()
		case !j.config.failOpen || j.unstarted(base, err) != Unavailable:
			return j.giveBack(base, attempt, run, attempts, err)
		}
	}
	ctx, cancel := until(held, base, attempt.Context())
	defer cancel()
	return j.call(ctx, run, func(run Run) { j.record(ctx, attempt, run, attempts) })
}

// alone takes the lock that keeps runs of different ticks apart, asking until there is an answer. A takeover waits:
// the runner before may have renewed this lock a moment after its claim.
func (j *job) alone(patience context.Context, takeover bool) (*core.Lease, error) {
	limit := time.Duration(0)
	switch {
	case j.config.overlap == overlapWait:
		limit = j.config.wait
	case takeover:
		limit = longestPeriod // or as long as patience allows
	}
	// An owner of its own, whatever the client or the caller's context say: no run enters the lock of another one.
	mutex := j.locks.Mutex(groupOf(j.name), slices.Concat(j.config.lock, []core.LockOption{
		core.WithMinHold(j.config.minHold), core.WithOwner(rand.Text()),
	})...)
	var doubt doubt
	began := time.Now()
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		lease, err := mutex.Lock(patience, core.WithWait(max(limit-time.Since(began), 0)))
		unanswered := errors.Is(err, core.ErrUnavailable)
		if !unanswered && !(errors.Is(err, core.ErrNotAcquired) && doubt.excuses()) {
			return lease, err
		}
		doubt.any = doubt.any || unanswered
		if !pause(patience, wait) {
			return nil, err
		}
	}
}

// unstarted judges why a claimed tick cannot start.
func (j *job) unstarted(base context.Context, err error) Reason {
	switch {
	case base.Err() != nil, errors.Is(err, core.ErrClosed):
		return Stopped
	case errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable):
		return Overlapping
	case errors.Is(err, core.ErrUnavailable):
		return Unavailable
	}
	return Refused
}

// giveBack ends an attempt that has not started, and says so.
func (j *job) giveBack(
	base context.Context, attempt *core.Attempt, run Run, attempts int, err error,
) error {
	reason := j.unstarted(base, err)
	if reason == Overlapping {
		err = fmt.Errorf("%w: %w", ErrOverlap, err)
	}
	if run.Outcome = Interrupted; reason == Overlapping || run.Attempt == attempts {
		run.Outcome = Skipped
	}
	j.record(base, attempt, run, attempts)
	j.skip(run.Tick, reason, err)
	return err
}

// record ends an attempt. What was interrupted is left to others, who wait for it, if they may try.
func (j *job) record(ctx context.Context, attempt *core.Attempt, run Run, attempts int) {
	ctx = context.WithoutCancel(ctx)
	var err error
	if run.Outcome == Interrupted && run.Attempt < attempts {
		err = attempt.Release(ctx)
	} else {
		err = attempt.Complete(ctx, run.encode())
	}
	if err != nil {
		j.config.logger.Warn("holdfast: cronlock: run not recorded", "job", j.name, "tick", run.Tick, "error", err)
	}
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
