package guard

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// answerTime is what is kept of the time until [Ask.By], for the answer itself.
const answerTime = time.Second

// leastFinish is enough for a Redis that works to confirm the end of a run.
const leastFinish = 100 * time.Millisecond

// engine is what [Exclusive] and [Once] have in common.
type engine struct {
	Config
	Log

	place  string
	hooks  Hooks
	memory memory // of a guard that fails open
}

func newEngine(place string, c Config, facts seal.Facts) engine {
	c.AskTimeout = cmp.Or(c.AskTimeout, defaultAskTimeout)
	c.FinishTimeout = cmp.Or(c.FinishTimeout, defaultFinishTimeout)
	c.Retention = cmp.Or(c.Retention, defaultRetention)
	return engine{Config: c, Log: Log{Logger: facts.Logger, place: place}, place: place, hooks: HooksOf(facts)}
}

// grant is what Redis has granted to a run: a lock or an attempt.
type grant interface {
	// Bind returns a context that descends from ctx and ends with the lease.
	Bind(ctx context.Context) (bound context.Context, cancel context.CancelFunc)
	// Context ends with the lease.
	Context() context.Context
	Token() int64
	Number() int
	Abandon()
	// end releases the lock, or records the end with a value.
	end(ctx context.Context, r *running, value []byte) error
}

// visit is a work item at a guard.
type visit struct {
	*engine
	ask  Ask
	run  Run
	came time.Time
	last time.Time // when Redis was asked last; came before that

	once     *Once // nil for Exclusive
	claim    func(ctx context.Context, wait time.Duration) (grant, error)
	question question
	granted  grant // by the last question to Redis
	within   bool  // the item is inside a run of this guard and name, so it is no other one
}

func (e *engine) visit(ask Ask, run Run) *visit {
	ask.Place = e.place
	now := time.Now()
	return &visit{engine: e, ask: ask, run: run, came: now, last: now}
}

// Patience returns how long a work item waits at a guard that lets it wait for so long, at most until it is too late to answer
// it. It is for [Ask.Turn].
func (e *engine) Patience(ask Ask, wait time.Duration) Patience {
	if !ask.By.IsZero() {
		wait = min(wait, time.Until(ask.By)-answerTime)
	}
	return Patience{Wait: max(wait, 0), Ask: e.AskTimeout, FailOpen: e.FailOpen}
}

// within returns true if ctx is inside a run of this guard and name, which is no other one.
func (e *engine) within(ctx context.Context, name string) bool {
	return entered(ctx, func(r *running) bool { return r.engine == e && r.ask.Name == name }) != nil
}

// keyless lets an item without a key pass, or refuses it.
func (v *visit) keyless(ctx context.Context) (*Outcome, error) {
	v.ask.KeyHash = ""
	if v.OptionalKey && !v.ask.KeyFailed {
		return v.pass(ctx)
	}
	return nil, v.refuse(ctx, v.ask.NoKey)
}

// pass runs an item without this guard.
func (v *visit) pass(ctx context.Context) (*Outcome, error) {
	if v.run.Pass != nil {
		v.run.Pass(ctx)
	} else {
		v.run.Call(ctx)
	}
	return &Outcome{Returned: true}, nil
}

// do begins or refuses, and runs.
func (v *visit) do(ctx context.Context) (*Outcome, error) {
	g, err := v.begin(ctx)
	left := func() {}
	if err == nil && v.FailOpen && !v.within {
		if left, err = v.memory.Granted(v.question); err != nil {
			v.unused(ctx, g)
		}
	}
	if err == nil {
		return v.start(ctx, g, nil, left)
	}
	if v.FailOpen && IsOutage(err) && ctx.Err() == nil {
		unavailable := err
		if left, err = v.open(unavailable); err == nil {
			return v.start(ctx, nil, unavailable, left)
		}
	}
	return nil, v.refuse(ctx, err)
}

// begin asks Redis when it is the item's turn.
func (v *visit) begin(ctx context.Context) (g grant, err error) {
	if v.ask.Turn != nil {
		err = v.ask.Turn(ctx, v.asks)
	} else {
		err = v.Patience(v.ask, v.Wait).Begin(ctx, v.asks)
	}
	if err != nil && v.granted != nil {
		v.unused(ctx, v.granted)
	}
	return v.granted, err
}

// asks asks this process and Redis.
func (v *visit) asks(ctx context.Context, wait time.Duration) (err error) {
	if v.FailOpen && !v.within {
		began := time.Now()
		if err := v.memory.Await(ctx, v.question, wait); err != nil {
			return err
		}
		wait = max(wait-time.Since(began), 0)
	}
	v.last = time.Now()
	if v.granted, err = v.claim(ctx, wait); v.FailOpen {
		v.memory.Refused(v.ask.Name, err)
	}
	return err
}

// open notes a run without Redis. The error is what is known of another one.
func (v *visit) open(unavailable error) (left func(), err error) {
	if v.within {
		return func() {}, nil
	}
	return v.memory.Enter(v.question, unavailable)
}

// start runs an item that may run, with what Redis has granted or without Redis. It calls left at the end.
func (v *visit) start(ctx context.Context, g grant, unguarded error, left func()) (*Outcome, error) {
	defer left()
	r := v.newRunning(ctx, g, unguarded)
	defer r.leave()
	if err := r.do(ctx); err != nil {
		return nil, v.refuse(ctx, err)
	}
	if _, _, found := r.proving.Committed(); found != nil && !r.handled {
		not := core.NotRun{Work: v.ask.Work, Err: found}
		v.answer(ctx, &not)
		return nil, not.Err
	}
	return r.outcome, nil
}

// unused takes back what was granted to an item that does not run.
func (v *visit) unused(ctx context.Context, g grant) {
	ctx, cancel := v.finishing(ctx, v.ask)
	defer cancel()
	switch g := g.(type) {
	case leaseGrant:
		_ = g.Unlock(ctx)
	case attemptGrant:
		_ = g.withdraw(ctx)
	}
}

// finishing returns the context in which an end is recorded in Redis. It does not end with the item, and lasts for half of the time
// that is left to answer it at most.
func (e *engine) finishing(ctx context.Context, ask Ask) (context.Context, context.CancelFunc) {
	limit := e.FinishTimeout
	if left := time.Until(ask.By); !ask.By.IsZero() && left > 0 {
		limit = min(limit, max(left/2, leastFinish))
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// refuse reports an item that does not run to the hooks and the log, and returns the error for it. It is nil if the caller got the
// result of an earlier run.
func (v *visit) refuse(ctx context.Context, err error) error {
	not := core.NotRun{Work: v.ask.Work, Waited: time.Since(v.came), RetryAfter: retryAfter(err), Err: err}
	if v.answer(ctx, &not); not.Err != nil && v.ask.NoKey == nil {
		v.logRefused(ctx, v.ask.Work, err, time.Since(v.last))
	}
	v.hooks.NotRun(ctx, not)
	return not.Err
}

// answer has the place return the result of an earlier run, or refuse the item. The error is nil after the former.
func (v *visit) answer(ctx context.Context, not *core.NotRun) {
	var done *core.CompletedError
	if errors.As(not.Err, &done) && v.run.Replay != nil {
		if not.Err = v.run.Replay(ctx, done.Record); not.Err == nil {
			not.Reason, not.Attempt, not.RetryAfter = core.ReasonReplayed, done.Record.Attempt, 0
			return
		}
	}
	if not.Reason = whyNot(v.ask, not.Err); ctx.Err() != nil { // that may be why its key function has failed, too
		not.Reason = ReasonEnded
	}
	if v.run.Refuse != nil {
		v.run.Refuse(ctx, not)
	}
}

// retryAfter is when a refused item may come again, by the error of core; 0 if that is not known.
func retryAfter(err error) time.Duration {
	var busy *core.NotAcquiredError
	var running *core.InProgressError
	var full *core.TooManyKeysError
	switch {
	case errors.As(err, &running):
		return running.RetryAfter
	case errors.As(err, &busy):
		return busy.RetryAfter
	case errors.As(err, &full):
		return full.RetryAfter
	}
	return 0
}

// incident reports what went wrong with an item that runs or has run, to the hooks and the log.
func (v *visit) incident(ctx context.Context, kind core.IncidentKind, err error) {
	v.Incident(ctx, core.Incident{Work: v.ask.Work, Kind: kind, Err: err})
}

// Incident reports what went wrong with a work item, to the hooks and the log. A place calls it for kinds of its own.
func (e *engine) Incident(ctx context.Context, i core.Incident) {
	i.Place = e.place
	e.logIncident(ctx, i)
	e.hooks.Incident(ctx, i)
}

// Hooks are the hooks of the client whose facts these are. They may be called whether they are set or not.
type Hooks struct{ hooks *core.Hooks }

// HooksOf returns the hooks of a client, or of the client of a lock.
func HooksOf(facts seal.Facts) Hooks {
	hooks, ok := facts.Hooks.(*core.Hooks)
	if !ok {
		hooks = new(core.Hooks)
	}
	return Hooks{hooks}
}

// RunStart returns the context for the run.
func (h Hooks) RunStart(ctx context.Context, start core.RunStart) context.Context {
	if h.hooks.RunStart == nil {
		return ctx
	}
	if own := h.hooks.RunStart(ctx, start); own != nil {
		return own
	}
	return ctx
}

// RunEnd reports the end of a run.
func (h Hooks) RunEnd(ctx context.Context, end core.RunEnd) {
	if h.hooks.RunEnd != nil {
		h.hooks.RunEnd(ctx, end)
	}
}

// NotRun reports what is not run.
func (h Hooks) NotRun(ctx context.Context, not core.NotRun) {
	if h.hooks.NotRun != nil {
		h.hooks.NotRun(ctx, not)
	}
}

// Incident reports what went wrong with a run.
func (h Hooks) Incident(ctx context.Context, incident core.Incident) {
	if h.hooks.Incident != nil {
		h.hooks.Incident(ctx, incident)
	}
}

// Runner runs work items that only [Run.Around] keeps from running: work of the leader of an election, for instance. Make it
// with [NewRunner]. It is safe for concurrent use.
type Runner struct{ engine }

// NewRunner returns a Runner with the hooks and the log of what has these facts. The place is the one of [core.Work].
func NewRunner(place string, facts seal.Facts) *Runner {
	return &Runner{newEngine(place, Config{}, facts)}
}

// Do calls run.Call, and returns the outcome after that, and otherwise why the item did not run: an error of Around or
// Refuse, or the cause for which ctx has ended.
func (r *Runner) Do(ctx context.Context, ask Ask, run Run) (*Outcome, error) {
	return r.visit(ask, run).start(ctx, nil, nil, func() {})
}
