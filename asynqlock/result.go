package asynqlock

import (
	"context"
	"log/slog"
	"slices"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// SetResult sets the result of a task behind [Once]. When the handler succeeds, the guard records the result and
// writes it to the task's [asynq.ResultWriter]. A later task of the key gets it written once more. The last call
// counts. The error is [core.ErrNotGuarded].
func SetResult(ctx context.Context, result []byte) error {
	r := recorded(ctx)
	if r == nil {
		return core.ErrNotGuarded
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = slices.Clone(result)
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

func (r *run) value() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result
}

// write gives asynq the result of a task. The record has it if that fails, and asynq refuses it once it has done with
// the task.
func (v *visit) write(t *asynq.Task, result []byte) {
	w := t.ResultWriter()
	if w == nil || len(result) == 0 {
		return
	}
	if _, err := w.Write(result); err != nil && v.ctx.Err() == nil {
		v.guard.logger.Warn("holdfast: asynqlock: result not written",
			"key", v.hash, "queue", shown(v.task.Queue), "type", shown(v.task.Type), "error", err)
	}
}

// replay acknowledges a task that has completed before, with the result that it had.
func (o *once) replay(v *visit, t *asynq.Task, record core.Record) error {
	v.ran()
	o.logReplay(v, record)
	v.write(t, record.Value)
	v.notRun(core.NotRun{Reason: core.ReasonReplayed, Attempt: record.Attempt})
	return nil
}

// What is logged of a task that is acknowledged without running.
const (
	logReusedID = "holdfast: asynqlock: task acknowledged without running: a task with its ID has completed before. " +
		"If it was enqueued again under that ID, as periodic tasks are, this run is lost: make the key with ByTick or PerPeriod"
	logDuplicate = "holdfast: asynqlock: task acknowledged without running: another task with its key has completed before"
)

// logReplay tells of a task that was acknowledged without running. A redelivery is what the guard is for: it is not
// logged, and is recognised by a retry that it has used up. A first delivery with the ID of the task that completed is
// most likely the next run of a periodic task with a fixed ID, which is lost. It may also be a task that a shutdown has
// given back though its handler went on and succeeded, or one that left the archive after [Guard.Resolve]. A first delivery
// with another ID is a duplicate, and expected.
func (o *once) logReplay(v *visit, record core.Record) {
	if v.task.ID == "" || v.task.Retried > 0 {
		return
	}
	level, text, kind := slog.LevelInfo, logDuplicate, "duplicate "
	if sameTask(record.Note, v.task) {
		level, text, kind = slog.LevelWarn, logReusedID, "reused "
	}
	if !o.logger.Enabled(v.ctx, level) {
		return
	}
	seen, within := o.replays.Event(kind + v.task.Type)
	if seen == 0 {
		return
	}
	attrs := []slog.Attr{
		slog.String("type", shown(v.task.Type)), slog.String("queue", shown(v.task.Queue)), slog.String("id", shown(v.task.ID)),
		slog.String("key_hash", v.hash), slog.String("completed_by", shown(record.Note)), slog.Time("began", record.Began),
	}
	if within > 0 {
		attrs = append(attrs, slog.Int("seen", seen), slog.Duration("within", within))
	}
	o.logger.LogAttrs(v.ctx, level, text, attrs...)
}
