package asynqlock

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Configure makes a server treat deferred tasks as deferred, not as failed. They use up no retry, are redelivered after
// the delay in their [DeferredError], and cause no call of the ErrorHandler while another task of their key runs.
// Everything else goes to the functions that cfg has, even what asynq's recoverer asks about tasks whose worker has
// crashed.
//
// If cfg has a BaseContext that has ended, for shutdown, a task that was cancelled by it has not failed either. Guards
// get the Concurrency of the server from its BaseContext, and let tasks wait in half of the workers at most.
//
// Call Configure last, once, when cfg is complete. If you make a server's config elsewhere, take IsFailure, RetryDelayFunc,
// ErrorHandler and BaseContext from one that Configure has completed. Configure panics if cfg is nil.
func Configure(cfg *asynq.Config) {
	if cfg == nil {
		panic("holdfast: asynqlock: Configure: the config is nil: pass a pointer to the asynq.Config of your server")
	}
	cfg.IsFailure = isFailure(cfg.IsFailure, cfg.BaseContext)
	cfg.BaseContext = withWorkers(cfg.BaseContext, newWorkers(cfg.Concurrency))
	cfg.RetryDelayFunc = retryDelay(cfg.RetryDelayFunc)
	if cfg.ErrorHandler != nil {
		cfg.ErrorHandler = errorHandler(cfg.ErrorHandler)
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

// isFailure makes a deferred task no failure, and neither one that was cancelled by the end of base.
func isFailure(next func(error) bool, base func() context.Context) func(error) bool {
	return func(err error) bool {
		var deferred *DeferredError
		switch {
		case err == nil, errors.As(err, &deferred):
			return false
		case base != nil && errors.Is(err, context.Canceled) && base().Err() != nil:
			return false
		case next != nil:
			return next(err)
		}
		return true
	}
}

// retryDelay makes asynq redeliver a deferred task after the delay in its error.
func retryDelay(next asynq.RetryDelayFunc) asynq.RetryDelayFunc {
	if next == nil {
		next = asynq.DefaultRetryDelayFunc
	}
	return func(n int, err error, t *asynq.Task) time.Duration {
		var deferred *DeferredError
		if errors.As(err, &deferred) {
			return deferred.RetryIn
		}
		return next(n, err, t)
	}
}

// errorHandler passes errors on, except that another task with the same key runs. It passes even that one on if asynq
// archives the task for it.
func errorHandler(next asynq.ErrorHandler) asynq.ErrorHandler {
	return asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
		var deferred *DeferredError
		if errors.As(err, &deferred) && guards.Busy(deferred.Err) && !isLast(taskOf(ctx)) {
			return
		}
		next.HandleError(ctx, t, err)
	})
}

// workers belong to one asynq server: a task that waits in a guard occupies one of them. [Configure] puts them into
// the context of every handler, because a handler cannot learn the number from asynq.
type workers struct {
	all     int
	waiting atomic.Int64
}

type workersKey struct{}

// newWorkers takes the Concurrency of an [asynq.Config], of which less than 1 means the number of processors.
func newWorkers(concurrency int) *workers {
	if concurrency < 1 {
		concurrency = runtime.NumCPU()
	}
	return &workers{all: concurrency}
}

// workersOf returns the workers of the server that runs the handler of ctx, nil if they are not known.
func workersOf(ctx context.Context) *workers {
	w, _ := ctx.Value(workersKey{}).(*workers)
	return w
}

// places returns how many workers may wait at most: half of them. Of unknown ones, it assumes asynq's default.
func (w *workers) places() int {
	if w == nil {
		return runtime.NumCPU() / 2
	}
	return w.all / 2
}

// free returns how many more tasks may wait.
func (w *workers) free() int {
	if w == nil {
		return w.places()
	}
	return w.places() - int(w.waiting.Load())
}

// sit reports whether a task may wait, and returns what ends its waiting. Half of the workers may wait. Tasks on their last
// attempt, which asynq would archive, may take more: all workers but two, so that beside the task that they wait for another
// key can run. Of fewer than three workers, one may wait for such a task.
func (w *workers) sit(last bool) (stand func(), ok bool) {
	if w == nil {
		return func() {}, true
	}
	most := w.places()
	if last {
		most = max(w.all-2, 1)
	}
	stand = func() { w.waiting.Add(-1) }
	if w.waiting.Add(1) > int64(most) {
		stand()
		return func() {}, false
	}
	return stand, true
}
