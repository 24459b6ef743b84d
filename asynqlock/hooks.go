package asynqlock

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// The reasons of a [core.NotRun] whose place is "task", beside [core.ReasonReplayed]. A task that comes again has a RetryAfter,
// and its Err is a [*DeferredError].
const (
	ReasonBusy        = "busy"            // deferred: another task with its key runs
	ReasonUnavailable = "unavailable"     // deferred: Redis cannot be asked, or refuses
	ReasonSkipped     = "skipped"         // acknowledged: another task with its key runs, see [SkipDuplicates]
	ReasonRejected    = "rejected"        // archived: another task with its key runs, see [RejectDuplicates]
	ReasonNoKey       = "no-key"          // archived: [ErrNoKey]
	ReasonKeyReused   = "key-reused"      // archived: its payload is not that of the first task, [core.ErrFingerprintMismatch]
	ReasonUnknown     = "outcome-unknown" // archived: nobody knows how an earlier run ended, [core.ErrOutcomeUnknown]
	ReasonEnded       = "ended"           // asynq's context ended before the task could run: a deadline, a cancellation
	ReasonGuardFailed = "guard-failed"    // failed: the lock or record cannot be used like this, a mistake of the program
)

// IncidentLine is the kind of a [core.Incident] of [WithLine]: a task was not added to its line or not removed from it.
const IncidentLine core.IncidentKind = "line"

// work describes the task to hooks.
func (v *visit) work() core.Work {
	w := core.Work{Place: "task", Label: label(v.task), KeyHash: v.hash}
	_, w.Due, _ = parseTickID(v.task.ID)
	return w
}

// notRun reports a task that does not run.
func (v *visit) notRun(n core.NotRun) {
	n.Work, n.Waited = v.work(), time.Since(v.came)
	v.guard.hooks.NotRun(v.ctx, n)
}

// started is called before the handler. It returns the handler's context.
func (r *run) started(ctx context.Context) context.Context {
	r.ran()
	token, _ := core.TokenFrom(ctx)
	r.setContext(ctx)
	ctx = r.guard.hooks.RunStart(ctx, core.RunStart{
		Work: r.work(), Token: token, Attempt: r.number(), Waited: time.Since(r.came),
	})
	r.setContext(ctx)
	if r.unguarded != nil {
		r.log(slog.LevelError, "holdfast: asynqlock: Redis could not be asked, the task runs unguarded", "unguarded",
			"error", r.unguarded)
		r.incident(core.IncidentUnguarded, r.unguarded)
	}
	return ctx
}

// ranFor is called after the handler.
func (r *run) ranFor(held time.Duration, state core.State, returned bool, err error) {
	if !returned {
		err = nil
	}
	ctx := r.values()
	token, _ := core.TokenFrom(ctx)
	r.guard.hooks.RunEnd(ctx, core.RunEnd{
		Work: r.work(), Token: token, Attempt: r.number(), State: state, Held: held, Panicked: !returned, Err: err,
	})
}

// failedIn logs and reports that Redis did not do what was asked for.
func (r *run) failedIn(operation string, kind core.IncidentKind, err error) {
	r.failed(operation, err)
	r.incident(kind, err)
}

// lineFailed is failedIn for the line, which also begins and ends outside of the run.
func (v *visit) lineFailed(ctx context.Context, err error) {
	v.failed("line", err)
	v.guard.hooks.Incident(ctx, core.Incident{Work: v.work(), Kind: IncidentLine, Err: err})
}

// incident reports what went wrong with the run.
func (r *run) incident(kind core.IncidentKind, err error) {
	r.guard.hooks.Incident(r.values(), core.Incident{Work: r.work(), Kind: kind, Err: err})
}

// overrun is called on a goroutine of its own, where a panic of the hook would end the process.
func (r *run) overrun(since time.Time) {
	defer func() {
		if p := recover(); p != nil {
			r.guard.logger.Error("holdfast: asynqlock: a hook panicked", "hook", "Incident", "panic", p)
		}
	}()
	r.guard.logger.Warn("holdfast: asynqlock: a handler continues although its task has ended; its lease expires",
		"key_hash", r.hash, "queue", shown(r.task.Queue), "type", shown(r.task.Type), "task", shown(r.task.ID), "since", since)
	r.incident(core.IncidentOverrun, fmt.Errorf("holdfast: asynqlock: the handler continues %v after the end of its task: %w",
		time.Since(since).Round(time.Millisecond), context.Cause(r.ctx)))
}

// number is that of the attempt, 0 without a record.
func (r *run) number() int {
	if r.attempt == nil {
		return 0
	}
	return r.attempt.Number()
}

func (r *run) setContext(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside = ctx
}

// values returns a context with the values of the handler's, which has not ended.
func (r *run) values() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside == nil {
		return context.WithoutCancel(r.ctx)
	}
	return context.WithoutCancel(r.inside)
}
