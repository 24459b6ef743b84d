package cronlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// ErrOverlap says that a run has not begun because an earlier run of the job is in progress.
var ErrOverlap = errors.New("holdfast: cronlock: an earlier run is in progress")

// execution is a run of a claimed tick.
type execution struct {
	*job
	tick     tick
	attempt  *core.Attempt
	attempts int // how often the tick may be tried
	run      Run
	lease    *core.Lease // nil if other ticks may run beside it
	word     seal.Run    // of the attempt: what the function has said
	overran  atomic.Bool // the outcome is recorded, though the function goes on
}

// execute runs a claimed tick, alone if the job says so. base is what the context of the run descends from, patience
// bounds the waiting for an earlier run, and attempts says how often the tick may be tried.
func (j *job) execute(
	base, patience context.Context, attempt *core.Attempt, t tick, attempts int,
) error {
	e := &execution{
		job: j, tick: t, attempt: attempt, attempts: attempts, word: seal.RunFrom(attempt.Context()), run: j.newRun(t.time),
	}
	e.run.Attempt, e.run.Token, e.run.Started = attempt.Number(), attempt.Token(), seal.AttemptOf(attempt).Began()
	e.run.Deadline, _ = patience.Deadline()
	if e.run.Attempt > attempts {
		_ = attempt.Hold(patience, "given up after too many attempts")
		j.logger.Warn("holdfast: cronlock: a tick is given up: no attempt was finished", "job", j.shown(), "tick", t.time,
			"attempts", attempts)
		j.skip(t, Taken, fmt.Errorf("holdfast: cronlock: given up after %d attempts", attempts))
		return nil
	}
	held := attempt.Context()
	if j.config.overlap != overlapAllow {
		lease, leave, err := j.alone(patience, e.run.Attempt > 1)
		if leave != nil {
			defer leave()
		}
		switch {
		case err == nil:
			j.current.Store(lease)
			defer func() {
				j.current.Store(nil)
				_ = lease.Unlock(context.WithoutCancel(patience)) // it frees itself otherwise
			}()
			// Its token rises from run to run as they follow each other. That of the attempt is as old as the claim,
			// which may have waited while a later tick ran.
			held, e.lease, e.run.Token = lease.Context(), lease, lease.Token()
		case !j.config.FailOpen || j.unstarted(base, err) != Unavailable:
			return e.giveBack(base, err)
		default:
			j.warnOfUnguarded(base, t.time, err)
		}
	}
	ctx, cancel := until(seal.WithRun(held, e.word), base, attempt.Context())
	defer cancel()
	began, err := j.lead(ctx, &e.run, e.call)
	if !began {
		return e.giveBack(base, err)
	}
	return err
}

// call calls the function and records its run.
func (e *execution) call(ctx context.Context) error {
	ctx, end := e.limit(ctx, e.overrun)
	defer end()
	return e.job.call(ctx, e.tick, e.run, func(run Run) core.State {
		e.current.Store(nil) // the function has returned, though Redis may not hear of that for long
		return e.record(ctx, run)
	})
}

// overrun ends the attempt of a run that does not stop. Its lease runs out: the function may be at it for some time
// yet.
func (e *execution) overrun() {
	e.overran.Store(true)
	run := e.run
	run.Outcome, run.Took = TimedOut, time.Since(e.run.Started)
	if err := e.attempt.Complete(context.Background(), run.encode()); errors.Is(err, core.ErrNotHeld) {
		return // the function has returned
	}
	if e.lease != nil {
		e.lease.Abandon()
	}
	e.warnOfOverrun(run)
}

// alone takes the lock that keeps runs of different ticks apart, asking until there is an answer, and returns what lets
// other runs start in this process. A takeover waits: the runner before may have renewed this lock a moment after its
// claim.
func (j *job) alone(patience context.Context, takeover bool) (lease *core.Lease, leave func(), err error) {
	limit := time.Duration(0)
	switch {
	case j.config.overlap == overlapWait:
		limit = j.config.Wait
	case takeover:
		limit = longestPeriod // or as long as patience allows
	}
	began := time.Now()
	if leave, err = j.enter(patience, limit); err != nil {
		return nil, nil, err
	}
	// An owner of its own, whatever the client or the caller's context say: no run enters the lock of another one.
	newOwner, _ := seal.FactsOf(j.locks).NewOwner.(core.LockOption)
	mutex := j.locks.Mutex(groupOf(j.name), append(j.config.lockOptions(), newOwner)...)
	var doubt doubt
	var busy error // what Redis has said of the run in the way
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		lease, err = j.take(patience, mutex, limit-time.Since(began))
		unanswered := errors.Is(err, core.ErrUnavailable)
		taken := errors.Is(err, core.ErrNotAcquired) && !unanswered
		if err == nil || permanent(err) || taken && !doubt.excuses() {
			return lease, leave, err
		}
		if taken {
			busy = err
		}
		doubt.any = doubt.any || unanswered
		if !idleFor(patience, wait) {
			return nil, leave, cmp.Or(busy, err)
		}
	}
}

// unstarted judges why a claimed tick cannot start.
func (j *job) unstarted(base context.Context, err error) string {
	switch {
	case base.Err() != nil, errors.Is(err, core.ErrClosed):
		return Stopped
	case errors.Is(err, core.ErrNotLeader):
		return NotLeader
	case errors.Is(err, ErrOverlap), errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable):
		return Overlapping
	case outage.Is(err):
		return j.unavailable()
	}
	return Refused
}

// giveBack ends an attempt that has not started, and says so. Another replica may start it if the fault is with this
// one.
func (e *execution) giveBack(base context.Context, err error) error {
	reason := e.unstarted(base, err)
	if reason == Overlapping && !errors.Is(err, ErrOverlap) {
		err = fmt.Errorf("%w: %w", ErrOverlap, err)
	}
	if reason != Overlapping && e.attempts > 1 || reason == NotLeader {
		e.warnUnrecorded(base, e.tick.time, seal.AttemptOf(e.attempt).Withdraw(context.WithoutCancel(base)))
	} else {
		run := e.run
		run.Outcome = Skipped
		e.record(base, run)
	}
	e.skip(e.tick, reason, err)
	return err
}

// record ends an attempt as the function has said, see [core.Complete], and returns what it has tried to record. Otherwise
// what was interrupted is left to others, which wait for it, if they may try.
func (e *execution) record(ctx context.Context, run Run) core.State {
	if e.overran.Load() {
		return core.StateCompleted
	}
	ctx = withRun(context.WithoutCancel(ctx), run)
	state, err := core.StateCompleted, error(nil)
	switch said, reason := e.word.Said(); {
	case said == seal.Held:
		state, err = core.StateUnknown, e.attempt.Hold(ctx, reason)
	case said == seal.Released, said == seal.Undecided && run.Outcome == Interrupted && run.Attempt < e.attempts:
		state, err = core.StateNone, e.attempt.Release(ctx)
	default:
		err = e.attempt.Complete(ctx, run.encode())
	}
	e.warnUnrecorded(ctx, e.tick.time, err)
	return state
}

// call calls the function of the job and hands the finished run on, however that ended. finish returns what it has recorded.
// A panic goes on.
func (j *job) call(ctx context.Context, t tick, run Run, finish func(Run) core.State) (err error) {
	run.Outcome = Running
	ctx = withRun(ctx, run)
	began, returned, waited := time.Now(), false, time.Since(t.came)
	defer func() {
		lost := context.Cause(ctx)
		run.Took = time.Since(began)
		run.Outcome = outcome(ctx, returned, err)
		end := core.RunEnd{
			Work: j.work(run.Tick), Token: run.Token, Attempt: run.Attempt, Held: run.Took, Panicked: !returned,
			Err: failure(ctx, run.Outcome, err), State: finish(run),
		}
		ctx := withRun(context.WithoutCancel(ctx), run)
		defer j.hooks.RunEnd(ctx, end) // also if the other hook panics
		if errors.Is(lost, core.ErrLeaseLost) {
			j.incident(ctx, run.Tick, core.IncidentLost, lost)
		}
	}()
	ctx = j.hooks.RunStart(ctx, core.RunStart{Work: j.work(run.Tick), Token: run.Token, Attempt: run.Attempt, Waited: waited})
	err = j.fn(ctx)
	returned = true
	if err != nil {
		j.logger.Warn("holdfast: cronlock: job failed", "job", j.shown(), "tick", run.Tick, "error", foreign.Error(err, maxShownText))
	}
	return err
}

func outcome(ctx context.Context, returned bool, err error) Outcome {
	switch {
	case !returned:
		return Panicked
	case err == nil:
		return Success
	case errors.Is(context.Cause(ctx), ErrTimeout):
		return TimedOut
	case ctx.Err() != nil:
		return Interrupted
	}
	return Failed
}

// failure returns the error of a run, with why its context has ended if that is the reason.
func failure(ctx context.Context, o Outcome, err error) error {
	if cause := context.Cause(ctx); (o == TimedOut || o == Interrupted) && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// ErrTimeout is the cause with which the context of a run ends that has taken longer than [WithTimeout].
var ErrTimeout = errors.New("holdfast: cronlock: the run takes longer than WithTimeout")

// limit ends the context of a run at its [WithTimeout], and calls overrun if cancel was not called for the whole grace
// after that.
func (j *job) limit(ctx context.Context, overrun func()) (limited context.Context, cancel context.CancelFunc) {
	if j.config.timeout == 0 {
		return context.WithCancel(ctx)
	}
	limited, end := context.WithTimeoutCause(ctx, j.config.timeout, ErrTimeout)
	timer := time.AfterFunc(j.config.timeout+j.config.ZombieGrace, overrun)
	return limited, func() {
		timer.Stop()
		end()
	}
}

// outlivesLease reports whether the function runs in this process without a lease, which was lost or given up. Such a
// process must not claim ticks, because it would skip them, though other replicas can run them.
func (j *job) outlivesLease() bool {
	lease := j.current.Load()
	return lease != nil && lease.Context().Err() != nil
}

// errHere is behind a tick that meets a run in its own process.
var errHere = fmt.Errorf("%w: in this process", ErrOverlap)

// enter lets no other run of the job start in this process until leave is called: whatever becomes of the lease, the
// function may go on. It waits for so long.
func (j *job) enter(ctx context.Context, limit time.Duration) (leave func(), err error) {
	leave = func() { <-j.slot }
	select {
	case j.slot <- struct{}{}:
		return leave, nil
	default:
	}
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case j.slot <- struct{}{}:
			return leave, nil
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil, errHere
}
