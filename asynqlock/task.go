package asynqlock

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// visit is a task that has come to a guard.
type visit struct {
	*guard
	ctx  context.Context // asynq's
	t    *asynq.Task
	task asynq.TaskInfo // what the context and the task say of it
	ask  guards.Ask
	came time.Time

	limit  int           // how many tasks of the key can run at a time; 0 without a line
	lined  bool          // it stands in the line of its key, see [WithLine]
	ahead  int           // tasks before it there, of which the first ones may be running
	notYet error         // why it does not ask yet unless it may wait: it has just come into the line; nil if it asks
	waits  time.Duration // it may wait for so long in its worker
	taken  error         // the reply of Redis if another task was in the way; nil if none was

	began  time.Time       // zero if it does not run under the guard
	inside context.Context // the handler's
	err    error           // the handler's

	mu     sync.Mutex
	result []byte
}

// visit describes a task to the engine. The type is part of the key of [Once]: what one task has done says nothing about
// another kind of task for the same order.
func (g *guard) visit(ctx context.Context, t *asynq.Task) *visit {
	v := &visit{guard: g, ctx: ctx, t: t, task: taskOf(ctx), came: time.Now(), waits: g.Wait}
	v.task.Type = t.Type()
	v.ask.Label = guards.Label(v.task.Type)
	v.ask.Turn = v.turn
	_, v.ask.Due, _ = parseTickID(v.task.ID)
	selective := false
	key, err := g.key.of(context.WithValue(ctx, selectiveKey{}, &selective), t)
	switch {
	case err != nil:
		v.ask.NoKey, v.ask.KeyFailed = err, errors.As(err, new(guards.KeyFailure))
		return v
	case g.once == nil:
		v.ask.KeyHash = guards.Hash(g.KeySecret, key)
	default:
		v.ask.KeyHash = guards.Hash(g.KeySecret, v.task.Type, key)
		v.ask.Note = note(v.task, thisProcess())
		if g.compare != nil && *g.compare || g.compare == nil && !selective {
			// The beginning, since it is kept in each record. 16 bytes are equal by accident as rarely as two UUIDs are.
			digest := guards.Digest(g.KeySecret, v.task.Type, string(t.Payload()))
			v.ask.Fingerprint = digest[:16]
		}
	}
	v.ask.Name = prefix + v.ask.KeyHash
	return v
}

// process lets the engine run a task or not, and returns asynq's result.
func (v *visit) process(next asynq.Handler) error {
	v.runs.visits.Add(1)
	defer v.gone()
	outcome, err := v.Guard.Do(v.ctx, v.ask, guards.Run{
		Call:   func(ctx context.Context) { v.err = next.ProcessTask(ctx, v.t) },
		Around: v.around, Judge: v.judge, Replay: v.replay, Refuse: v.refuse,
	})
	switch {
	case err != nil:
		return guards.Idle(err)
	case v.began.IsZero(), outcome == nil: // it was let pass, or replayed
		return v.err
	}
	return v.ended(outcome)
}

// gone notes that the task is not at the guard any more.
func (v *visit) gone() {
	v.runs.visits.Add(-1)
	if v.lined {
		v.line.here.Delete(v.member())
	}
}

// around lists the run, and ends its context some time before asynq's.
func (v *visit) around(ctx context.Context, _ *guards.Outcome, next func(context.Context)) error {
	v.began = time.Now()
	if until, ok := v.until(); ok {
		bounded, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = bounded
	}
	if v.once != nil {
		ctx = context.WithValue(ctx, resultKey{}, v)
	}
	v.inside = ctx
	v.runs.running.Store(v, nil)
	defer v.runs.running.Delete(v)
	if v.lined {
		defer v.leave()
	}
	next(ctx)
	return nil
}

// commitMargin is how long a handler's context ends before asynq's, so that the end of a run is recorded before asynq takes
// it for failed: at most a tenth of the task's time.
const commitMargin = 2 * time.Second

// until returns when the task should be done, so that it can be recorded before asynq takes it for failed.
func (v *visit) until() (time.Time, bool) {
	deadline, ok := v.ctx.Deadline()
	return deadline.Add(-min(commitMargin, deadline.Sub(v.came)/10)), ok
}

// judge judges how a handler ended. Nothing is recorded of a task that a guard behind this one has turned away, that has no
// handler, or that its handler revokes: asynq deletes it, so that nobody could find out for a record of unknown outcome.
func (v *visit) judge(o *guards.Outcome) {
	o.Err = v.err
	o.Value = func() ([]byte, error) { return v.value(), nil }
	switch {
	case !o.Returned:
	case v.err == nil:
		o.Verdict = guards.Completed
		if v.once == nil {
			break
		}
		if said, _ := seal.RunFrom(v.inside).Word().Said(); said == seal.Held {
			o.Err = core.ErrOutcomeUnknown
		}
	case guards.IsIdle(v.err), errors.Is(v.err, asynq.ErrHandlerNotFound), errors.Is(v.err, asynq.RevokeTask):
		o.Verdict = guards.Released
	}
}

// ended returns asynq's result for a task that has run. One that has succeeded has done so, whatever became of its lease: it
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
		return v.deferral(guards.Joined(err, o.Lost))
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
	record, _ := v.once.Of(v.ask).Peek(ctx)
	return record.State
}

// archived returns the error with which asynq archives a task of unknown outcome. [core.Hold] outweighs [asynq.RevokeTask],
// for which asynq would delete the task, and with it what an operator needs for [Guard.Resolve] and [Guard.Forget].
func archived(err error) error {
	if errors.Is(err, asynq.RevokeTask) {
		err = errors.New(err.Error())
	}
	return guards.Joined(err, core.ErrOutcomeUnknown, asynq.SkipRetry)
}

// resultKey is where the context of a handler has the visit of the innermost [Once].
type resultKey struct{}

// SetResult sets the result of a task behind [Once]. When the handler succeeds, the guard records the result and
// writes it to the task's [asynq.ResultWriter]. A later task of the key gets it written once more. The last call
// counts. Without a call, the result is what the handler has committed with a [core.WithProof]. The error is [core.ErrNotGuarded].
func SetResult(ctx context.Context, result []byte) error {
	v, ok := ctx.Value(resultKey{}).(*visit)
	if !ok {
		return core.ErrNotGuarded
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.result = slices.Clone(result)
	return nil
}

// WithResult makes a handler of a function that returns its result, see [SetResult]. Put it behind [Once]; without
// Once the result is only written.
func WithResult(fn func(context.Context, *asynq.Task) ([]byte, error)) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		result, err := fn(ctx, t)
		if err != nil {
			return err
		}
		if w := t.ResultWriter(); SetResult(ctx, result) != nil && w != nil {
			_, _ = w.Write(result) // an error must not make the task run again
		}
		return nil
	})
}

// value returns the result that the handler has set, or has committed with a proof.
func (v *visit) value() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.result == nil && v.inside != nil {
		committed, _, _ := seal.ProvingFrom(v.inside).Committed()
		return committed
	}
	return v.result
}

// write gives asynq the result of a task. The record has it if that fails, and asynq refuses it once it has done with
// the task.
func (v *visit) write(result []byte) {
	w := v.t.ResultWriter()
	if w == nil || len(result) == 0 {
		return
	}
	if _, err := w.Write(result); err != nil && v.ctx.Err() == nil {
		v.Event(v.ctx, slog.LevelWarn, "result", "holdfast: asynqlock: result not written", v.ask.Work, err, v.attrs()...)
	}
}

type taskKey struct{}

// ContextWithTask returns a context for a handler outside an asynq server: for tests, and to make the key of a task
// that an [asynq.Inspector] has found. It uses ID, Queue, Retried and MaxRetry of info.
func ContextWithTask(ctx context.Context, info *asynq.TaskInfo) context.Context {
	if info == nil {
		info = &asynq.TaskInfo{}
	}
	return context.WithValue(ctx, taskKey{}, *info)
}

// taskOf returns what a handler's context has about its task. The ID is zero if ctx is not a handler's.
func taskOf(ctx context.Context) asynq.TaskInfo {
	task, made := ctx.Value(taskKey{}).(asynq.TaskInfo)
	if !made {
		task.ID, _ = asynq.GetTaskID(ctx)
		task.Queue, _ = asynq.GetQueueName(ctx)
		task.Retried, _ = asynq.GetRetryCount(ctx)
		task.MaxRetry, _ = asynq.GetMaxRetry(ctx)
	}
	return task
}

// isLast reports whether asynq archives the task if this run does not succeed, whatever the reason.
func isLast(t asynq.TaskInfo) bool { return t.ID != "" && t.Retried >= t.MaxRetry }

// attrs are what the log has of a task, beside what it has of all work.
func (v *visit) attrs(more ...slog.Attr) []slog.Attr {
	return append(more, slog.String("queue", shown(v.task.Queue)), slog.String("task", shown(v.task.ID)))
}

// maxShownText bounds what the log and errors show of a text of a task or a record. Producers choose these texts.
const maxShownText = 100

// shown returns such a text for the log, and quoted for an error.
func shown(text string) string { return foreign.Line(text, maxShownText) }

func quoted(text string) string { return foreign.Quote(text, maxShownText) }

const (
	// maxCompactField is the longest field with which Redis keeps a small hash in its compact encoding, by its default
	// hash-max-listpack-value. One longer field makes the hash a table, which takes more than twice the memory.
	maxCompactField = 64
	// minHost is the least that is kept of host and process: enough to tell pods apart.
	minHost = 12
)

// thisProcess is where tasks run, for notes.
var thisProcess = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	return host + ":" + strconv.Itoa(os.Getpid())
})

// note names the task and the process that runs it, for readers of the record. To make the note compact, the place loses its
// beginning: the end of a host name is what tells the pods of a service apart, and the process ID follows it.
func note(t asynq.TaskInfo, place string) string {
	task := identity(t)
	return task + " " + place[max(len(place)-max(maxCompactField-len(task)-1, minHost), 0):]
}

// identity is the name of a task, or its hash if that is long.
func identity(t asynq.TaskInfo) string {
	if name := t.Queue + "/" + t.ID; len(name) <= 128 {
		return name
	}
	return "sha256:" + guards.Hash(nil, t.Queue, t.ID)
}

// sameTask reports whether a note is about that task. One that only may be counts too, as it does without ID.
func sameTask(note string, t asynq.TaskInfo) bool {
	return t.ID == "" || strings.HasPrefix(note, identity(t)+" ")
}

// Degraded returns true if ctx belongs to a task that runs without Redis, see [FailOpen]. There is no fencing token
// then.
func Degraded(ctx context.Context) bool { return guards.Degraded(ctx) }
