package asynqlock

import (
	"context"
	"errors"

	"github.com/hibiken/asynq"
)

// Configure makes a server treat deferred tasks as what they are: they burn no retry, come again when [DeferredError]
// says, and are no news for the ErrorHandler while another task of their key runs. Everything else goes to the
// functions that cfg has, also what asynq's recoverer asks about tasks whose worker is gone.
//
// If cfg has a BaseContext that has ended, for shutdown, a task that was cancelled by it has not failed either. Guards
// learn the Concurrency of the server from its BaseContext, and let tasks wait in half of the workers at most.
//
// Call it last, once, when cfg is complete.
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

// ErrorHandler returns one that tells next of all errors but that another task with the same key runs, unless asynq
// archives the task for it. Nil is told nothing.
func ErrorHandler(next asynq.ErrorHandler) asynq.ErrorHandler {
	return asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
		var deferred *DeferredError
		if errors.As(err, &deferred) && deferred.busy() && !taskOf(ctx, t).last() || next == nil {
			return
		}
		next.HandleError(ctx, t, err)
	})
}
