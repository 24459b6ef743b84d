package asynqlock

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/internal/foreign"
)

// taskInfo is what asynq knows of a task.
type taskInfo struct {
	ID    string // unique in its queue only
	Queue string
	Type  string
	// Retried counts the failed runs, of which there may be as many as MaxRetry.
	Retried  int
	MaxRetry int
}

// last reports whether asynq archives the task if this run does not succeed, whatever the reason.
func (t taskInfo) last() bool { return t.ID != "" && t.Retried >= t.MaxRetry }

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
	return context.WithValue(ctx, taskKey{}, taskInfo{
		ID: info.ID, Queue: info.Queue, Retried: info.Retried, MaxRetry: info.MaxRetry,
	})
}

// taskOf describes the task that a handler got. The zero ID tells that ctx is not that of a handler.
func taskOf(ctx context.Context, t *asynq.Task) taskInfo {
	task, ok := ctx.Value(taskKey{}).(taskInfo)
	if !ok {
		task.ID, _ = asynq.GetTaskID(ctx)
		task.Queue, _ = asynq.GetQueueName(ctx)
		task.Retried, _ = asynq.GetRetryCount(ctx)
		task.MaxRetry, _ = asynq.GetMaxRetry(ctx)
	}
	task.Type = t.Type()
	return task
}
