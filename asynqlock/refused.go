package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// The reasons of a [core.NotRun] whose place is "task", beside [core.ReasonReplayed]. A task that comes again has a RetryAfter,
// and its Err is a [*DeferredError].
const (
	ReasonBusy        = guards.ReasonBusy        // deferred: another task with its key runs
	ReasonUnavailable = guards.ReasonUnavailable // deferred: Redis cannot be asked, or refuses
	ReasonUndecided   = guards.ReasonUndecided   // deferred: the proof could not be asked, [core.ErrUndecided]
	ReasonNoKey       = guards.ReasonNoKey       // archived: [ErrNoKey]
	ReasonKeyReused   = guards.ReasonKeyReused   // archived: its payload differs from the first task's, [core.ErrFingerprintMismatch]
	ReasonUnknown     = guards.ReasonUnknown     // archived: nobody knows how an earlier run ended, [core.ErrOutcomeUnknown]
	ReasonEnded       = guards.ReasonEnded       // asynq's context ended before the task could run: a deadline, a cancellation
	ReasonGuardFailed = guards.ReasonGuardFailed // failed: the lock or record cannot be used like this, a mistake of the program
)

// refuse decides what becomes of a task that does not run, and what asynq gets.
func (v *visit) refuse(_ context.Context, not *core.NotRun) {
	if v.lined {
		v.line.called.Delete(v.member()) // it may be called again
	}
	switch err := not.Err; {
	case v.ask.NoKey != nil:
		v.archive(not, ReasonNoKey)
	case errors.Is(err, core.ErrFingerprintMismatch):
		not.Err = v.mismatch(err)
		v.archive(not, ReasonKeyReused)
	case errors.Is(err, core.ErrOutcomeUnknown):
		v.archive(not, ReasonUnknown)
	case v.ctx.Err() != nil:
		not.Reason, not.RetryAfter, not.Err = ReasonEnded, 0, v.ctx.Err()
	case guards.Mistaken(err): // which would not go away by itself
	default:
		e := v.deferral(err)
		not.RetryAfter, not.Err = e.RetryIn, e
	}
}

// mismatch names the task that has another payload than the first one with its key, and the option that decides.
// Payload and key are left out: asynq stores the error, and keys are secret.
func (v *visit) mismatch(err error) error {
	remedy := "if the payloads may differ, make the key with ByPayload(fields...) or pass ComparePayload(false)"
	if v.compare != nil {
		remedy = "ComparePayload(true) refuses that"
	}
	return fmt.Errorf("holdfast: asynqlock: task %s of type %s in queue %s: another payload than the first task "+
		"with its key: %s: %w", quoted(v.task.ID), quoted(v.task.Type), quoted(v.task.Queue), remedy, err)
}

// archive refuses a task that would fare no better another time.
func (v *visit) archive(not *core.NotRun, reason string) {
	not.Reason, not.RetryAfter = reason, 0
	not.Err = fmt.Errorf("%w: %w", not.Err, asynq.SkipRetry)
}

// What is logged of a task that is acknowledged without running.
const (
	logReusedID = "holdfast: asynqlock: task acknowledged without running: a task with its ID has completed before. " +
		"If it was enqueued again under that ID, as periodic tasks are, this run is lost: make the key with ByTick or PerPeriod"
	logDuplicate = "holdfast: asynqlock: task acknowledged without running: another task with its key has completed before"
)

// replay acknowledges a task that has completed before, with the result that it had.
//
// A redelivery is what the guard is for: it is not logged, and is recognised by a retry that it has used up. A first delivery
// with the ID of the task that completed is most likely the next run of a periodic task with a fixed ID, which is lost. It
// may also be a task that a shutdown has given back though its handler continued and succeeded, or one that left the archive
// after [Guard.Resolve]. A first delivery with another ID is a duplicate, and expected.
func (v *visit) replay(_ context.Context, r core.Record) error {
	if v.task.ID != "" && v.task.Retried == 0 {
		level, text, kind := slog.LevelInfo, logDuplicate, "duplicate "
		if sameTask(r.Note, v.task) {
			level, text, kind = slog.LevelWarn, logReusedID, "reused "
		}
		v.Event(v.ctx, level, kind+v.task.Type, text, v.ask.Work, nil,
			v.attrs(slog.String("completed_by", shown(r.Note)), slog.Time("began", r.Began))...)
	}
	v.write(r.Value)
	v.err = nil // of a handler that has found the effect of an earlier task
	return nil
}
