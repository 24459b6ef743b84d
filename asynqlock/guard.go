package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/throttle"
)

// guard is what Once and Exclusive have in common.
type guard struct {
	config
	key      KeyFunc
	hooks    guards.Hooks
	logger   *slog.Logger
	busy     busyTasks
	memory   outage.Memory     // of a guard that fails open
	warnings throttle.Throttle // of what is logged
	unknown  throttle.Seen     // keys of unknown outcome that were logged
}

// reportTo makes the guard report to the hooks and the logger of a client.
func (g *guard) reportTo(client seal.Facts) {
	g.hooks, g.logger = guards.HooksOf(client), client.Logger
}

// visit is a task that has come to a guard.
type visit struct {
	guard  *guard
	ctx    context.Context // asynq's
	task   taskInfo
	hash   string    // of the key
	traits keyTraits // of the key
	came   time.Time

	fingerprint []byte // of Once, nil if payloads are not compared

	lock   *core.Lock    // of Exclusive, otherwise nil
	limit  int           // how many tasks of the key can run at a time
	lined  bool          // it stands in the line of its key, see [WithLine]
	spot   spot          // there
	waits  time.Duration // in that, 0 without
	seated bool          // it may occupy its worker while it waits
	busy   error         // what Redis has said if another task was in the way; nil if none was

	unguarded error // why it runs without Redis, nil if it does not
}

// visit makes the key of a task. The error is [ErrNoKey].
func (g *guard) visit(ctx context.Context, t *asynq.Task, hashOf func(key string) string) (*visit, error) {
	v := &visit{guard: g, ctx: ctx, task: taskOf(ctx, t), came: time.Now()}
	key, err := g.key.of(withTraits(ctx, &v.traits), t)
	if err == nil {
		v.hash = hashOf(key)
	}
	return v, err
}

// keyless runs a task without key, or does not.
func (v *visit) keyless(t *asynq.Task, next asynq.Handler, err error) error {
	if v.guard.OptionalKey {
		return next.ProcessTask(v.ctx, t)
	}
	return idle(v.refused(ReasonNoKey, err))
}

// idleError is the error of a task whose handler was not called: for a guard around this one, it has done nothing.
type idleError struct{ error }

// Unwrap returns the reason.
func (e idleError) Unwrap() error { return e.error }

func idle(err error) error {
	if err == nil {
		return nil
	}
	return idleError{err}
}

// refused makes the error of a task that would fare no better another time: it is archived.
func (v *visit) refused(reason string, err error) error {
	v.ran()
	v.notRun(core.NotRun{Reason: reason, Err: err})
	return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
}

// deferred makes the error of a task that has not run and has to come again.
func (v *visit) deferred(reason error) error {
	e := v.deferral(reason)
	word := ReasonUnavailable
	if isBusy(reason) {
		word = ReasonBusy
	}
	v.notRun(core.NotRun{Reason: word, RetryAfter: e.RetryIn, Err: e})
	return e
}

// deferral makes the error of a task that has to come again.
func (v *visit) deferral(reason error) *DeferredError {
	e := &DeferredError{KeyHash: v.hash, RetryIn: v.retryIn(), Ahead: v.spot.ahead, Err: reason}
	switch {
	case !isBusy(reason):
		v.warn("holdfast: asynqlock: task deferred", "deferred", "error", reason)
	case v.task.ID != "":
		v.bounced(e)
	}
	return e
}

// retryIn returns when a deferred task comes again.
func (v *visit) retryIn() time.Duration {
	delay := jittered(v.guard.retryIn)
	if v.guard.line != nil {
		delay = v.guard.line.delay(v, delay)
	}
	return delay
}

// bounced counts a task that another one of its key was in the way of.
func (v *visit) bounced(e *DeferredError) {
	g := v.guard
	bounce := g.busy.bounce(v.task, time.Now(), g.maxBusy, e.RetryIn)
	e.Busy, e.Times = bounce.busy, bounce.times
	if bounce.burned {
		v.burned()
	}
	if v.task.last() {
		v.warn("holdfast: asynqlock: a task on its last attempt may not wait any longer, and asynq archives it: give tasks "+
			"a retry", "archived", "task", shown(v.task.ID))
	}
	if bounce.tooLong {
		e.Err = fmt.Errorf("%w: for %v: %w", ErrBusyTooLong, e.Busy.Round(time.Second), e.Err)
		g.logger.Warn("holdfast: asynqlock: a task is being deferred for long because others with its key run",
			"key_hash", v.hash, "queue", shown(v.task.Queue), "type", shown(v.task.Type), "task", shown(v.task.ID), "since", e.Busy,
			"times", e.Times, "ahead", e.Ahead)
	}
}

// ran ends the count of deferrals of a task that runs, or never will.
func (v *visit) ran() {
	if v.guard.busy.ran(v.task, time.Now(), v.guard.retryIn) {
		v.burned()
	}
}

// burned warns that a deferral has cost the task a retry.
func (v *visit) burned() {
	v.guard.logger.Warn("holdfast: asynqlock: a deferred task has used up a retry: pass asynq's Config to Configure, unless a "+
		"middleware in front of the guard has failed", "queue", shown(v.task.Queue), "type", shown(v.task.Type))
}

// hindered makes the error of a task that did not get its lock or record for another reason than that they are taken. A
// mistake in the program is a failure: it would not go away by itself.
func (v *visit) hindered(reason error) error {
	for _, mistake := range []error{
		core.ErrInvalidOption, core.ErrInvalidName, core.ErrUpgrade, core.ErrWrongType,
	} {
		if errors.Is(reason, mistake) {
			v.notRun(core.NotRun{Reason: ReasonGuardFailed, Err: reason})
			return reason
		}
	}
	return v.deferred(reason)
}

const (
	logGuardFailed = "holdfast: asynqlock: the guard of a task has failed"
	logUnknown     = "holdfast: asynqlock: the outcome of a task is unknown, its key is held until Resolve or Forget"
)

// held logs each task after which no task of its key runs until an operator has looked.
func (v *visit) held() {
	v.guard.unknown.First(v.hash)
	v.guard.logger.Warn(logUnknown, "key", v.hash, "queue", shown(v.task.Queue), "type", shown(v.task.Type), "task", shown(v.task.ID))
}

// failed logs that Redis did not do what was asked for.
func (v *visit) failed(operation string, err error) {
	v.warn(logGuardFailed, operation, "operation", operation, "error", err)
}

// over returns the error of a task whose own time has ended before it could run.
func (v *visit) over() error {
	err := v.ctx.Err()
	v.notRun(core.NotRun{Reason: ReasonEnded, Err: err})
	return err
}

// warn logs what happens to a task. In an outage it happens to all tasks: after the first time, one line a minute says
// how often. What hooks are told is complete.
func (v *visit) warn(text, kind string, more ...any) { v.log(slog.LevelWarn, text, kind, more...) }

func (v *visit) log(level slog.Level, text, kind string, more ...any) {
	seen, within := v.guard.warnings.Event(kind + " " + v.task.Type)
	if seen == 0 {
		return
	}
	if within > 0 {
		more = append(more, "seen", seen, "within", within)
	}
	v.guard.logger.Log(v.ctx, level, text, append([]any{"key_hash", v.hash, "queue", shown(v.task.Queue), "type", shown(v.task.Type)}, more...)...)
}

// until returns when the task should be done, so that it can be recorded before asynq takes it for failed.
func (v *visit) until() (time.Time, bool) {
	deadline, ok := v.ctx.Deadline()
	return deadline.Add(-min(v.guard.commitMargin, deadline.Sub(v.came)/10)), ok
}

// patience returns for how long the task may wait yet: for half of its time at most, because its handler needs the rest.
// A task that asynq would archive if it came back deferred waits for as long as that: asynq asks only then whether that
// is a failure.
func (v *visit) patience() time.Duration {
	limit := v.guard.Wait
	if v.waits > 0 {
		limit = v.waits
	}
	until, bounded := v.until()
	switch left := (until.Sub(v.came)/2 - time.Since(v.came)).Truncate(outage.ShortestWait); {
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

// ask calls begin, which asks Redis and may wait for so long, within bounds. The task takes one of the workers that may
// wait only when another one is in the way. On the last attempt an outage is waited for too, unless the task may run
// without Redis: it would have no time left for that.
//
// If Redis has said that another task is in the way, and does not answer after that, the error is what Redis has said.
// Why: the other task still runs, so a guard that fails open must not take this for an outage. Nor is a healthy Redis
// down for a wait below the round trip.
func (v *visit) ask(begin func(ctx context.Context, wait time.Duration) error) error {
	err := v.answer(begin)
	if v.busy != nil && v.outage(err) {
		return v.busy
	}
	return err
}

func (v *visit) answer(begin func(ctx context.Context, wait time.Duration) error) error {
	err := v.once(begin)
	if err == nil || !v.mayWait(err) {
		return err
	}
	stand, seated := workersOf(v.ctx).sit(v.hash, v.task.last())
	defer stand()
	v.seated = seated
	for v.patience() > 0 {
		if err = v.once(begin); err == nil || !errors.Is(err, core.ErrUnavailable) || !v.mayWait(err) {
			return err
		}
		if !sleep(v.ctx, min(time.Second, v.patience())) {
			return err
		}
	}
	return err
}

func (v *visit) once(begin func(ctx context.Context, wait time.Duration) error) error {
	wait := v.patience()
	ctx, cancel := context.WithTimeout(v.ctx, wait+outage.AskTimeout)
	defer cancel()
	err := v.unrecorded()
	if err == nil {
		err = begin(ctx, wait)
	}
	if isBusy(err) {
		v.busy = err
		v.remember(err)
	}
	return err
}

// mayWait reports whether the task may wait for what is in its way: another task, or on its last attempt Redis.
func (v *visit) mayWait(err error) bool {
	if isBusy(err) {
		return v.guard.Wait > 0 || v.waits > 0 || v.task.last()
	}
	_, bounded := v.until()
	opens := false
	if v.guard.FailOpen && v.busy == nil {
		known := v.known(err)
		opens = known == nil || errors.Is(known, core.ErrCompleted) // that needs no Redis either
	}
	return errors.Is(err, core.ErrUnavailable) && v.task.last() && bounded && !opens
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

// outage reports whether Redis could not be asked, which is no mistake in the program, and nothing that a full Redis or
// a missing right brings about.
func (v *visit) outage(err error) bool { return outage.Is(err) && v.ctx.Err() == nil }
