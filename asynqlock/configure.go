package asynqlock

import (
	"context"
	"errors"

	"github.com/hibiken/asynq"
)

// Configure makes a server treat deferred tasks as deferred, not as failed. They burn no retry, are redelivered after
// the delay in their [DeferredError], and cause no call of the ErrorHandler while another task of their key runs.
// Everything else goes to the functions that cfg has, even what asynq's recoverer asks about tasks whose worker has
// crashed.
//
// If cfg has a BaseContext that has ended, for shutdown, a task that was cancelled by it has not failed either. Guards
// get the Concurrency of the server from its BaseContext, and let tasks wait in half of the workers at most.
//
// Call Configure last, once, when cfg is complete.
func Configure(cfg *asynq.Config) {
	cfg.IsFailure = isFailure(cfg.IsFailure, cfg.BaseContext)
	cfg.BaseContext = withWorkers(cfg.BaseContext, newWorkers(cfg.Concurrency))
	cfg.RetryDelayFunc = RetryDelay(cfg.RetryDelayFunc)
	if cfg.ErrorHandler != nil {
		cfg.ErrorHandler = ErrorHandler(cfg.ErrorHandler)
	}
}

// withWorkers makes the contexts of handlers carry the workers of their server, on which the guards go that let tasks
// wait.
func withWorkers(base func() context.Context, w *workers) func() context.Context {
	return func() context.Context {
		ctx := context.Background()
		if base != nil {
			ctx = base()
		}
		return context.WithValue(ctx, workersKey{}, w)
	}
}

func isFailure(next func(error) bool, base func() context.Context) func(error) bool {
	return func(err error) bool {
		switch {
		case !IsFailure(err):
			return false
		case base != nil && errors.Is(err, context.Canceled) && base().Err() != nil:
			return false
		case next != nil:
			return next(err)
		}
		return true
	}
}

// ErrorHandler returns a handler that passes errors to next, except that another task with the same key runs. It
// passes even that one on if asynq archives the task for it. If next is nil, the handler does nothing.
func ErrorHandler(next asynq.ErrorHandler) asynq.ErrorHandler {
	return asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
		var deferred *DeferredError
		if errors.As(err, &deferred) && deferred.busy() && !taskOf(ctx, t).last() || next == nil {
			return
		}
		next.HandleError(ctx, t, err)
	})
}
