package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// workPlace is the place of tasks in [core.Work].
const workPlace = "task"

// prefix keeps the locks and records of tasks apart from others.
const prefix = "asynq:"

// guard is what Once and Exclusive have in common. The engine lets a task run or not, and records its end. This package makes
// keys, decides how long a task waits, and answers asynq.
type guard struct {
	config
	engine
	key  KeyFunc
	busy busyTasks
	once *guards.Once // nil for Exclusive
}

// engine is a [guards.Once] or a [guards.Exclusive].
type engine interface {
	Do(ctx context.Context, ask guards.Ask, run guards.Run) (*guards.Outcome, error)
	Known(ask guards.Ask, unavailable error) error
	Within(ctx context.Context, name string) bool
	Incident(ctx context.Context, i core.Incident)
	Event(ctx context.Context, level slog.Level, kind, text string, w core.Work, err error, more ...slog.Attr)
	Line(ctx context.Context, level slog.Level, text string, w core.Work, more ...slog.Attr)
}

// visit is a task that has come to a guard.
type visit struct {
	*guard
	ctx  context.Context // asynq's
	t    *asynq.Task
	task taskInfo
	ask  guards.Ask
	came time.Time

	limit  int           // how many tasks of the key can run at a time; 0 without a line
	lined  bool          // it stands in the line of its key, see [WithLine]
	spot   spot          // there
	waits  time.Duration // in that, 0 without
	seated bool          // it may occupy its worker while it waits
	taken  error         // what Redis has said if another task was in the way; nil if none was

	skipped bool            // see [SkipDuplicates]
	began   time.Time       // zero if it does not run under the guard
	inside  context.Context // the handler's
	err     error           // the handler's

	mu     sync.Mutex
	result []byte
}

// visit describes a task to the engine.
func (g *guard) visit(ctx context.Context, t *asynq.Task, hashOf func(key string) string) *visit {
	v := &visit{guard: g, ctx: ctx, t: t, task: taskOf(ctx, t), came: time.Now()}
	v.ask.Label, v.ask.Turn = label(v.task), v.turn
	_, v.ask.Due, _ = parseTickID(v.task.ID)
	var traits keyTraits
	key, err := g.key.of(withTraits(ctx, &traits), t)
	if err != nil {
		v.ask.NoKey = err
		return v
	}
	v.ask.KeyHash = hashOf(key)
	v.ask.Name = prefix + v.ask.KeyHash
	if g.once != nil {
		v.ask.Note = note(v.task)
		if g.comparesPayload(traits) {
			v.ask.Fingerprint = fingerprint(g.KeySecret, t)
		}
	}
	return v
}

// process lets the engine run a task or not, and returns what to tell asynq.
func (v *visit) process(next asynq.Handler) error {
	v.runs.come()
	defer v.runs.leave()
	outcome, err := v.engine.Do(v.ctx, v.ask, guards.Run{
		Call:   func(ctx context.Context) { v.err = next.ProcessTask(ctx, v.t) },
		Around: v.around, Judge: v.judge, Replay: v.replay, Refuse: v.refuse,
	})
	switch {
	case v.skipped:
		return nil
	case err != nil:
		return idleError{err}
	case v.began.IsZero(), outcome == nil: // it was let pass, or replayed
		return v.err
	}
	return v.ended(outcome)
}

// around lists the run, and ends its context some time before that of asynq, see [WithCommitMargin].
func (v *visit) around(ctx context.Context, _ *guards.Outcome, next func(context.Context)) error {
	v.began = time.Now()
	v.settled()
	if until, ok := v.until(); ok {
		bounded, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = bounded
	}
	if v.once != nil {
		ctx = context.WithValue(ctx, resultKey{}, v)
	}
	v.inside = ctx
	v.runs.add(v)
	defer v.runs.remove(v)
	if v.lined {
		v.begun()
		defer v.leave()
	}
	next(ctx)
	return nil
}

// until returns when the task should be done, so that it can be recorded before asynq takes it for failed.
func (v *visit) until() (time.Time, bool) {
	deadline, ok := v.ctx.Deadline()
	return deadline.Add(-min(v.commitMargin, deadline.Sub(v.came)/10)), ok
}

// judge judges how a handler ended. Nothing is recorded of a task that a guard behind this one has turned away, that has no
// handler, or that its handler revokes: asynq deletes it, so that nobody could find out for a record of unknown outcome.
func (v *visit) judge(o *guards.Outcome) {
	o.Err = v.err
	o.Value = func() ([]byte, error) { return v.value(), nil }
	_, idle := v.err.(idleError) // itself: what a handler makes of one is the handler's error
	switch {
	case !o.Returned:
	case v.err == nil:
		o.Verdict = guards.Completed
		if v.once != nil && heldBy(v.inside) {
			o.Err = core.ErrOutcomeUnknown
		}
	case idle, errors.Is(v.err, asynq.ErrHandlerNotFound), errors.Is(v.err, asynq.RevokeTask):
		o.Verdict = guards.Released
	}
}

// heldBy reports whether a handler has called [core.Hold].
func heldBy(ctx context.Context) bool {
	said, _ := seal.RunFrom(ctx).Said()
	return said == seal.Held
}

// ended returns what to tell asynq of a task that has run. One that has succeeded has done so, whatever became of its lease: it
// would only be run once more.
func (v *visit) ended(o *guards.Outcome) error {
	err := v.err
	switch {
	case o.State == core.StateUnknown:
		return archived(err)
	case o.State == core.StateCompleted:
		if errors.Is(o.Unrecorded, core.ErrStale) && v.recorded() != core.StateCompleted {
			return v.deferral(o.Unrecorded) // how the other attempt fares decides
		}
		err = nil
	case err != nil && o.Lost != nil && !errors.Is(err, asynq.RevokeTask): // which does not come again
		return v.deferral(joined(err, o.Lost))
	}
	if err == nil {
		v.write(v.value())
	}
	return err
}

// recorded returns the state of the record after another attempt, and "" if Redis does not answer.
func (v *visit) recorded() core.State {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), v.FinishTimeout)
	defer cancel()
	record, err := v.once.Of(v.ask).Peek(ctx)
	if err != nil {
		return ""
	}
	return record.State
}

// archived returns the error with which asynq archives a task of unknown outcome. [core.Hold] outweighs [asynq.RevokeTask],
// for which asynq would delete the task, and with it what an operator needs for [Guard.Resolve] and [Guard.Forget].
func archived(err error) error {
	if errors.Is(err, asynq.RevokeTask) {
		err = errors.New(err.Error())
	}
	return joined(err, core.ErrOutcomeUnknown, asynq.SkipRetry)
}

// joined returns an error that is all of errs, of which the first may be nil.
func joined(errs ...error) error {
	if errs[0] == nil {
		errs = errs[1:]
	}
	err := errs[0]
	for _, more := range errs[1:] {
		if !errors.Is(err, more) {
			err = fmt.Errorf("%w: %w", err, more)
		}
	}
	return err
}

// attrs are what the log has of a task, beside what it has of all work.
func (v *visit) attrs(more ...slog.Attr) []slog.Attr {
	return append(more, slog.String("queue", shown(v.task.Queue)), slog.String("task", shown(v.task.ID)))
}

// Degraded returns true if ctx is that of a task which runs without Redis, see [FailOpen]. There is no fencing token
// then.
func Degraded(ctx context.Context) bool { return guards.Degraded(ctx) }
