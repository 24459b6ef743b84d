package asynqlock

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// prefix keeps the locks and records of tasks apart from others.
const prefix = "asynq:"

func recordName(hash string) string { return prefix + hash }

// recordHash makes the hash of a key of Once. The type is part of it: what one task has done says nothing about another
// kind of task for the same order.
func recordHash(secret []byte, t *asynq.Task, key string) string {
	return hash(secret, join(t.Type(), key))
}

// Peek reads the record of a task, which has [core.StateNone] if there is none. The task is what an [asynq.Inspector]
// returns. Errors are [ErrNoKey] and those of [core.Once.Peek].
func (g *Guard) Peek(ctx context.Context, info *asynq.TaskInfo) (core.Record, error) {
	once, err := g.recordOf(ctx, info)
	if err != nil {
		return core.Record{}, err
	}
	return once.Peek(ctx)
}

// Resolve records that a task has taken effect: an operator has found out how a run of unknown outcome ended. The next
// delivery is acknowledged with that result, which may be nil. It applies to the record that Peek returned for the task.
// Errors are [ErrNoKey] and those of [core.Once.Resolve]: [core.ErrChanged] if the record has changed since, and
// [core.ErrInProgress] while the task runs.
func (g *Guard) Resolve(ctx context.Context, info *asynq.TaskInfo, seen core.Record, result []byte) error {
	once, err := g.recordOf(ctx, info)
	if err != nil {
		return err
	}
	return once.Resolve(ctx, seen, result)
}

// Forget deletes the record of a task, so that the task runs when it is delivered again: an operator has found out
// that it took no effect. It applies to the record that Peek returned for the task. Errors are [ErrNoKey] and those of
// [core.Once.Forget]: [core.ErrChanged] if the record has changed since, and [core.ErrInProgress] while the task runs.
func (g *Guard) Forget(ctx context.Context, info *asynq.TaskInfo, seen core.Record) error {
	once, err := g.recordOf(ctx, info)
	if err != nil {
		return err
	}
	return once.Forget(ctx, seen)
}

// recordOf returns the Once of a task.
func (g *Guard) recordOf(ctx context.Context, info *asynq.TaskInfo) (*core.Once, error) {
	switch {
	case g == nil || g.once == nil:
		return nil, errZeroGuard
	case info == nil:
		return nil, errNoTask
	}
	t := asynq.NewTaskWithHeaders(info.Type, info.Payload, info.Headers)
	v, err := g.once.arrive(ContextWithTask(ctx, info), t)
	if err != nil {
		return nil, err
	}
	return g.once.of(v), nil
}
