package cronlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// ErrOverlap says that a run has not begun because an earlier run of the job is in progress.
var ErrOverlap = errors.New("holdfast: cronlock: an earlier run is in progress")

// tick is a tick that this replica handles.
type tick struct {
	time     time.Time     // on the schedule
	deadline time.Duration // how late it may start
}

// latest is until when it may start.
func (t tick) latest() time.Time { return t.time.Add(t.deadline) }

// execution is a tick, or a run out of turn, at the guard of its job.
type execution struct {
	*job
	tick     tick // without a deadline for what is no tick
	base     context.Context
	patience context.Context // bounds the asking for the tick
	attempts int             // how often it may be tried
	watched  bool            // another replica ran it when this one came
	granted  bool            // by Redis
	not      decided         // why it does not run

	attempt *core.Attempt
	lease   *core.Lease         // nil if other ticks may run beside it
	live    atomic.Pointer[Run] // see RunFrom
	began   time.Time           // zero before
	limited context.Context     // of the run, with its timeout
	ctx     context.Context     // of the function
	err     error               // what the function has returned
	overran atomic.Bool         // the outcome is recorded, though the function continues
}

func (j *job) newExecution(base context.Context, t tick) *execution {
	return &execution{job: j, tick: t, base: base, patience: base, attempts: 1}
}

// handle is what the guard does with the tick.
func (e *execution) handle(around func(context.Context, *guard.Outcome, func(context.Context)) error) guard.Run {
	return guard.Run{Call: e.call, Around: around, Judge: e.judge, Refuse: e.refuse, Overrun: e.overrun}
}

// decided is why a tick does not run. It is no outage for the guard, which may fail open, and has no log line of its own there.
type decided struct {
	reason string
	err    error
}

// Error implements error.
func (d decided) Error() string { return d.reason }

// because judges an error for which a tick does not run.
func (e *execution) because(err error) decided {
	if not, ok := err.(decided); ok {
		return not
	}
	reason := e.reason(err)
	if reason == Overlapping && !errors.Is(err, ErrOverlap) {
		err = fmt.Errorf("%w: %w", ErrOverlap, err)
	}
	return decided{reason, err}
}

func (e *execution) reason(err error) string {
	var outside *core.OutsideWindowError
	switch {
	case e.base.Err() != nil, errors.Is(err, core.ErrClosed):
		return Stopped
	case errors.As(err, &outside) && outside.Early:
		return Early
	case errors.As(err, &outside):
		return Late
	case errors.Is(err, core.ErrNotLeader):
		return NotLeader
	case errors.Is(err, ErrOverlap), errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable):
		return Overlapping
	case errors.Is(err, core.ErrInProgress), errors.Is(err, core.ErrCompleted), errors.Is(err, core.ErrOutcomeUnknown):
		return Taken
	case errors.Is(err, core.ErrUndecided):
		return Undecided
	case guard.IsOutage(err), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, core.ErrUnavailable):
		return e.unavailable()
	}
	return Refused
}

// ask is what the guard is asked for a tick. Its record leaves nothing to the client that would change what is promised.
func (e *execution) ask() guard.Ask {
	t := e.tick
	return guard.Ask{
		Work: e.work(t.time), Name: tickKey(e.name, t.time), Note: e.identity.note(), Retention: e.retention(t.time),
		Once: []core.OnceOption{core.WithWindow(t.time.Add(-e.config.maxSkew), t.latest())}, Turn: e.turn,
	}
}

// around runs a tick, alone if the job says so.
func (e *execution) around(ctx context.Context, o *guard.Outcome, next func(context.Context)) error {
	run, patience := e.newRun(e.tick.time), e.patience
	run.Deadline = e.tick.latest()
	if o.Unguarded == nil {
		e.granted = true
		e.attempt, _ = core.AttemptFrom(ctx)
		if err := e.gate(o.Attempt); err != nil {
			return err
		}
		if o.Attempt > e.attempts {
			o.Verdict, o.Reason = guard.Held, givenUp
			return decided{Taken, fmt.Errorf("holdfast: cronlock: given up after %d attempts", e.attempts)}
		}
		run.Attempt, run.Token, run.Started = o.Attempt, o.Token, seal.AttemptOf(e.attempt).Began()
		if e.tick.deadline > 0 {
			limited, cancel := context.WithTimeout(e.base, e.tick.latest().Sub(run.Started)) // by the clock of Redis
			defer cancel()
			patience = limited
		}
		run.Deadline, _ = patience.Deadline()
	}
	alone, leave, err := e.alone(ctx, patience, &run, o.Unguarded != nil)
	defer leave()
	if err == nil {
		err = e.begin(alone, o, run, next)
	}
	if err == nil || o.Unguarded != nil {
		return err
	}
	return e.giveBack(o, run, err)
}

// alone keeps other runs of the job from being in progress until leave is called: in this process, and by a lock, unless Redis was
// not asked for the tick. It asks until there is an answer. The context ends with the lock.
func (e *execution) alone(ctx, patience context.Context, run *Run, unguarded bool) (bound context.Context, leave func(), err error) {
	leave = func() {}
	if e.config.overlaps {
		return ctx, leave, nil
	}
	limit := e.config.Wait
	switch {
	case unguarded:
		limit = 0
	case limit == 0 && run.Attempt > 1: // the runner before may have renewed this lock a moment after its claim
		limit = longestPeriod // or as long as patience allows
	}
	began := time.Now()
	if !e.enter(patience, limit) {
		return ctx, leave, errHere
	}
	leave = func() { <-e.slot }
	if unguarded {
		return ctx, leave, nil
	}
	err = untilAnswered(patience, func() (err error) {
		wait := guard.Patience{Wait: max(limit-time.Since(began), 0), Ask: guard.AskTimeout, FailOpen: e.config.FailOpen}
		e.lease, err = wait.Lock(patience, e.lock)
		return err
	})
	switch {
	case err == nil:
	case e.config.FailOpen && e.reason(err) == Unavailable:
		e.guard.Incident(e.base, core.Incident{Work: e.work(e.tick.time), Kind: core.IncidentUnguarded, Err: err})
		return ctx, leave, nil
	default:
		return ctx, leave, err
	}
	// Its token rises from run to run as they follow each other. That of the attempt is as old as the claim, which may have waited
	// while a later tick ran.
	run.Token = e.lease.Token()
	e.current.Store(e.lease)
	bound, cancel := seal.FactsOf(e.lease).Lease.Bind(ctx)
	return bound, func() {
		cancel()
		e.current.Store(nil)
		_ = e.lease.Unlock(context.WithoutCancel(patience)) // it frees itself otherwise
		<-e.slot
	}, nil
}

// begin calls next as the leader, if the job needs one. The error is why it did not.
func (e *execution) begin(ctx context.Context, o *guard.Outcome, run Run, next func(context.Context)) error {
	start := func(ctx context.Context) error {
		if e.config.timeout > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, e.config.timeout, ErrTimeout)
			defer cancel()
			ctx = limited
		}
		run.Outcome = Panicked // if that is a hook, which others would call again
		o.Token, o.Verdict, o.Value = run.Token, guard.Completed, run.value
		run.Outcome = Running
		e.live.Store(&run)
		e.began, e.limited = time.Now(), withRun(ctx, &e.live)
		next(e.limited)
		return e.err
	}
	var err error
	if e.config.leader == nil {
		err = start(ctx)
	} else {
		err = e.config.leader.TryDo(ctx, func(ctx context.Context) error {
			run.Token, _ = core.TokenFrom(ctx) // the term
			return start(ctx)
		})
	}
	if e.began.IsZero() {
		return err
	}
	e.err = err
	return nil
}

// giveBack ends an attempt that has not started. Another replica may start it if the fault is with this one.
func (e *execution) giveBack(o *guard.Outcome, run Run, err error) error {
	not := e.because(err)
	if not.reason != NotLeader && (not.reason == Overlapping || e.attempts == 1) {
		run.Outcome = Skipped
		o.Verdict, o.Value = guard.Completed, run.value
	}
	return not
}

// call calls the function of the job.
func (e *execution) call(ctx context.Context) {
	e.ctx = ctx
	e.err = e.fn(ctx)
	if errors.Is(e.err, core.ErrCompleted) && seal.FoundEffect(ctx) {
		e.err = nil // it returned the error of its transaction: the tick took effect before, and is recorded as a success
	}
	if e.err != nil {
		e.logger.Warn("holdfast: cronlock: job failed", "job", e.shown(), "tick", e.tick.time,
			"error", foreign.Error(e.err, maxShownText))
	}
}

// judge judges a run. Whatever its outcome, it is not repeated, but what was interrupted is left to others, which wait for it, if
// they may try.
func (e *execution) judge(o *guard.Outcome) {
	e.current.Store(nil) // the function has returned, though Redis may not hear of that for a long time
	run := *e.live.Load()
	run.Took, run.Outcome = o.Took, outcome(e.ctx, o.Returned, e.err)
	e.live.Store(&run)
	o.Verdict, o.Value, o.Err = guard.Completed, run.value, failure(e.ctx, run.Outcome, e.err)
	if run.Outcome == Interrupted && max(run.Attempt, 1) < e.attempts && !e.overran.Load() {
		o.Verdict = guard.Released
	}
	if lost := context.Cause(e.ctx); errors.Is(lost, core.ErrLeaseLost) {
		o.Lost = lost
	}
}

// refuse reports a tick that does not run here.
func (e *execution) refuse(_ context.Context, not *core.NotRun) {
	e.not = e.because(not.Err)
	not.Reason, not.Err = e.not.reason, e.not.err
	level := slog.LevelWarn
	switch {
	case errors.Is(not.Err, core.ErrOutcomeUnknown): // its runner has crashed, and nobody knows how far it came
	case not.Reason == Taken, not.Reason == NotLeader:
		level = slog.LevelDebug // the rule
	case not.Reason == Paused, not.Reason == Stopped:
		level = slog.LevelInfo // as somebody wanted it
	}
	e.logger.Log(context.Background(), level, "holdfast: cronlock: tick skipped",
		"job", e.shown(), "tick", e.tick.time, "reason", not.Reason, "error", not.Err)
}

// overrun ends the attempt of a run that does not stop. Its lease runs out: the function may be at it for some time
// yet. A run that did not take too long, but was cancelled, is left to others.
func (e *execution) overrun(ctx context.Context) {
	before := e.live.Load()
	run := *before
	run.Outcome, run.Took = TimedOut, time.Since(e.began)
	if errors.Is(context.Cause(e.limited), ErrTimeout) && e.live.CompareAndSwap(before, &run) && e.attempt != nil {
		e.overran.Store(true)
		value, _ := run.value()
		_ = e.attempt.Complete(ctx, value) // retried in the background
	}
	if e.lease != nil {
		e.lease.Abandon()
	}
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

// outlivesLease reports whether the function runs in this process without a lease, which was lost or given up. Such a
// process must not claim ticks, because it would skip them, though other replicas can run them.
func (j *job) outlivesLease() bool {
	lease := j.current.Load()
	return lease != nil && lease.Context().Err() != nil
}

// errHere is behind a tick that meets a run in its own process.
var errHere = fmt.Errorf("%w: in this process", ErrOverlap)

// enter lets no other run of the job start in this process until the slot is empty again: whatever becomes of the lease, the
// function may continue. It waits for so long, and returns false if the slot was not free.
func (j *job) enter(ctx context.Context, limit time.Duration) bool {
	select {
	case j.slot <- struct{}{}:
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case j.slot <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// leads returns why this replica may not run ticks of the job; nil if it may.
func (j *job) leads() error {
	if j.config.leader == nil {
		return nil
	}
	return j.config.leader.IsLeader(j.config.context)
}
