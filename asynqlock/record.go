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

// Peek reads the record of a task behind [Once] with that key function. The task is one that an [asynq.Inspector] has
// found. Give Peek the options of the guard. Errors are [ErrNoKey], those of options, and those of [core.Once.Peek].
func Peek(
	ctx context.Context, locks *core.Client, key KeyFunc, info *asynq.TaskInfo, opts ...Option,
) (core.Record, error) {
	once, err := recordOf(ctx, "asynqlock.Peek", locks, key, info, opts)
	if err != nil {
		return core.Record{}, err
	}
	return once.Peek(ctx)
}

// Forget deletes the record of a task, so that the task runs when it is delivered again: an operator has found out
// that it took no effect. It applies to the record that [Peek] returned, see there for the other arguments. Errors are
// those of [core.Once.Forget]: [core.ErrChanged] if the record has changed since, and [core.ErrInProgress] while the task
// runs.
func Forget(
	ctx context.Context, locks *core.Client, key KeyFunc, info *asynq.TaskInfo, seen core.Record, opts ...Option,
) error {
	once, err := recordOf(ctx, "asynqlock.Forget", locks, key, info, opts)
	if err != nil {
		return err
	}
	return once.Forget(ctx, seen)
}

// Resolve records that a task has taken effect: an operator has found out how a run of unknown outcome ended. The next
// delivery is acknowledged with that result, which may be nil. It applies to the record that [Peek] returned, see there for
// the other arguments. Errors are those of [core.Once.Resolve].
func Resolve(
	ctx context.Context, locks *core.Client, key KeyFunc, info *asynq.TaskInfo, seen core.Record, result []byte,
	opts ...Option,
) error {
	once, err := recordOf(ctx, "asynqlock.Resolve", locks, key, info, opts)
	if err != nil {
		return err
	}
	return once.Resolve(ctx, seen, result)
}

// recordOf returns the Once of a task.
func recordOf(
	ctx context.Context, place string, locks *core.Client, key KeyFunc, info *asynq.TaskInfo, opts []Option,
) (*core.Once, error) {
	o := &once{guard: guard{config: newConfig(oncePlace(place), opts), key: key}, locks: locks}
	switch {
	case locks == nil:
		return nil, errNoClient
	case key == nil:
		return nil, errNoKeyFunc
	case info == nil:
		return nil, errNoTask
	}
	if err := o.checkOnce(); err != nil {
		return nil, err
	}
	o.options = o.onceOptions()
	t := asynq.NewTaskWithHeaders(info.Type, info.Payload, info.Headers)
	v, err := o.arrive(ContextWithTask(ctx, info), t)
	if err != nil {
		return nil, err
	}
	return o.of(v), nil
}
