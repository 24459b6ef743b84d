package asynq_test

import (
	"context"
	"errors"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	guardconformance "github.com/holdfast-go/holdfast/tests/conformance/guard"
)

// TestConformance: tasks pass the suite of all places. The sender is asynq: it waits for the handler until the context ends.
func TestConformance(t *testing.T) {
	t.Parallel()
	guardconformance.Run(t, guardconformance.Place{
		Work: core.Work{Place: "task", Label: kind},
		Lacks: map[string]string{
			"OmittedValueIsNotReplayed": "such a task is acknowledged without a result, see TestResultTooLarge",
		},
		New: func(
			t testing.TB, locks *core.Client, of guardconformance.Kind, fn guardconformance.Func, opts ...guard.Option,
		) guardconformance.Deliver {
			opts = guard.Without(opts, "WithAskTimeout") // which tasks have not
			if of == guardconformance.Once {
				g, err := asynqlock.NewOnce(locks, asynqlock.ByHeader("key"), opts...)
				if err != nil {
					t.Fatal(err)
				}
				return deliverer(g.Wrap, fn, g)
			}
			wrap, err := asynqlock.NewExclusive(locks.Mutex, asynqlock.ByHeader("key"), opts...)
			if err != nil {
				t.Fatal(err)
			}
			return deliverer(wrap, fn, nil)
		},
	})
}

// deliverer delivers tasks to a guard. The recorder finds the result of a task that was acknowledged without running; it is nil for
// Exclusive.
func deliverer(wrap asynq.MiddlewareFunc, fn guardconformance.Func, recorder *asynqlock.Guard) guardconformance.Deliver {
	return func(ctx context.Context, key, payload string) guardconformance.Result {
		info := &asynq.TaskInfo{ID: "1", Queue: "default", Type: kind, Payload: []byte(payload), Headers: map[string]string{"key": key}, MaxRetry: 25}
		result, done := guardconformance.Result{Code: guardconformance.Broken}, make(chan struct{})
		go func() { // of asynq's worker, which recovers
			defer close(done)
			defer func() { _ = recover() }()
			var value string
			ran := false
			err := wrap(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) (err error) {
				ran = true
				value, err = fn(ctx, string(t.Payload()))
				_ = asynqlock.SetResult(ctx, []byte(value))
				return err
			})).ProcessTask(asynqlock.ContextWithTask(ctx, info), asynq.NewTaskWithHeaders(kind, info.Payload, info.Headers))
			code := codeOf(ran, err)
			if code == guardconformance.Replayed {
				record, _ := recorder.Peek(context.WithoutCancel(ctx), info)
				value = string(record.Value)
			}
			result = guardconformance.Result{Code: code, Value: value}
		}()
		select {
		case <-done:
			return result
		case <-ctx.Done():
			return guardconformance.Result{Code: guardconformance.Left}
		}
	}
}

// codeOf tells what became of a task from what a guard has returned to asynq.
func codeOf(ran bool, err error) guardconformance.Code {
	switch {
	case errors.Is(err, core.ErrOutcomeUnknown):
		return guardconformance.Unknown
	case errors.Is(err, core.ErrFingerprintMismatch):
		return guardconformance.Mismatch
	case ran && err == nil:
		return guardconformance.Ran
	case ran:
		return guardconformance.Failed
	case err == nil:
		return guardconformance.Replayed
	case errors.Is(err, asynqlock.ErrNoKey):
		return guardconformance.NoKey
	case !isFailure(err) && errors.Is(err, core.ErrUndecided):
		return guardconformance.Undecided
	case !isFailure(err) && errors.Is(err, core.ErrUnavailable):
		return guardconformance.Unavailable
	case !isFailure(err):
		return guardconformance.Busy
	}
	return guardconformance.Erroneous
}
