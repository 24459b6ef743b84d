package asynqlock

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/internal/foreign"
)

// Task describes a task to hooks.
type Task struct {
	// ID is unique in its queue only.
	ID    string
	Queue string
	Type  string
	// Retried counts the failed runs, of which there may be as many as MaxRetry.
	Retried  int
	MaxRetry int
}

// last reports whether asynq archives the task if this run does not succeed, whatever the reason.
func (t Task) last() bool { return t.ID != "" && t.Retried >= t.MaxRetry }

// maxShownText bounds what the log and errors show of a text of a task or a record. Producers choose these texts.
const maxShownText = 100

// shown returns such a text for the log, and quoted for an error.
func shown(text string) string { return foreign.Line(text, maxShownText) }

func quoted(text string) string { return foreign.Quote(text, maxShownText) }

type taskKey struct{}

// ContextWithTask returns a context for a handler outside an asynq server: for tests, and to make the key of a task
// that an [asynq.Inspector] has found. It uses ID, Queue, Retried and MaxRetry of info.
func ContextWithTask(ctx context.Context, info *asynq.TaskInfo) context.Context {
	if info == nil {
		info = &asynq.TaskInfo{}
	}
	return context.WithValue(ctx, taskKey{}, Task{
		ID: info.ID, Queue: info.Queue, Retried: info.Retried, MaxRetry: info.MaxRetry,
	})
}

// taskOf describes the task that a handler got. The zero ID tells that ctx is not that of a handler.
func taskOf(ctx context.Context, t *asynq.Task) Task {
	task, ok := ctx.Value(taskKey{}).(Task)
	if !ok {
		task.ID, _ = asynq.GetTaskID(ctx)
		task.Queue, _ = asynq.GetQueueName(ctx)
		task.Retried, _ = asynq.GetRetryCount(ctx)
		task.MaxRetry, _ = asynq.GetMaxRetry(ctx)
	}
	task.Type = t.Type()
	return task
}
