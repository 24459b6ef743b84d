// Package river guards a worker of River. River inserts a job once by its unique options, but says nothing about two
// jobs that are for one order, and runs a job again whose worker has died. Behind a guard each key takes effect once.
package river

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/msglock"
)

// Once returns a worker that works each key once. A job that has to come later is snoozed, which does not count as an
// attempt. One that a person has to look at is cancelled, with the reason in its errors.
func Once[T river.JobArgs](
	locks *core.Client, key func(T) string, work func(context.Context, *river.Job[T]) error, opts ...msglock.Option,
) river.Worker[T] {
	var args T
	keyOf := func(_ context.Context, job *river.Job[T]) (string, error) { return key(job.Args), nil }
	handle := msglock.Once(locks, "river "+args.Kind(), keyOf, work, opts...)
	return river.WorkFunc(func(ctx context.Context, job *river.Job[T]) error {
		err := handle(ctx, job)
		switch action, delay := msglock.Disposition(err); {
		case action == msglock.Park:
			return river.JobCancel(err)
		case action == msglock.Nack && delay > 0:
			return river.JobSnooze(delay)
		}
		return err
	})
}
