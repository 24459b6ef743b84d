package asynqlock

import (
	"context"
	"log/slog"
	"slices"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// resultKey is where the context of a handler has the visit of the innermost [Once].
type resultKey struct{}

// SetResult sets the result of a task behind [Once]. When the handler succeeds, the guard records the result and
// writes it to the task's [asynq.ResultWriter]. A later task of the key gets it written once more. The last call
// counts. The error is [core.ErrNotGuarded].
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

func (v *visit) value() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
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
