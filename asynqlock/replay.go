package asynqlock

import (
	"log/slog"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

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
// logged, and is recognised by a retry that it has burned. A first delivery with the ID of the task that completed is
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
