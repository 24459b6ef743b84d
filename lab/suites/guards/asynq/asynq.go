// Package asynq guards the handlers of asynq's tests.
package asynq

import (
	"context"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
)

// Install returns what puts the middleware around a handler.
func Install() func(asynq.Handler) asynq.Handler {
	key := func(context.Context, *asynq.Task) (string, error) { return uuid.NewString(), nil }
	kind, _ := installed.Which()
	switch kind {
	case "exclusive":
		return asynqlock.Exclusive(installed.Locks().Mutex, key)
	case "once":
		return asynqlock.Once(installed.Locks(), key)
	case installed.Baseline:
		return func(handler asynq.Handler) asynq.Handler {
			return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
				installed.Ask()
				defer installed.Ask()
				return handler.ProcessTask(ctx, task)
			})
		}
	}
	return func(handler asynq.Handler) asynq.Handler { return handler }
}
