package core

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// BeginAll begins an attempt of each Once, for callers that take much work at a time. It returns what [Once.Begin] would have
// returned for each, by index: an attempt or an error. The requests leave in one pipeline per master, or one for every 256, and
// Redis executes them in the order given. Of two with one key, the first one begins, and the second gets [ErrInProgress].
//
// A Once with [WithWait] waits after that, beside the others. BeginAll returns when the last wait has ended. The caller must end each
// attempt.
//
// A nil Once gets [ErrInvalidOption]. If a hook panics, no attempt is left behind, and the panic continues.
func (c *Client) BeginAll(ctx context.Context, onces ...*Once) ([]*Attempt, []error) {
	attempts, handed := make([]*Attempt, len(onces)), false
	defer func() {
		if handed {
			return
		}
		for _, a := range attempts {
			if a != nil {
				a.withdrawUnused(ctx)
			}
		}
	}()
	errs := transport.DoGrouped(ctx, len(onces), func(ctx context.Context, i int) (err error) {
		if onces[i] == nil {
			return invalidOption("BeginAll: the Once with index %d is nil", i)
		}
		now := *onces[i]
		now.config.lock.wait = 0 // who waits may send nothing for a while, and the other requests would wait too
		attempts[i], err = now.Begin(ctx)
		return err
	})
	var waiting []int
	for i, err := range errs {
		if errors.Is(err, ErrInProgress) && onces[i].config.lock.wait != 0 {
			waiting = append(waiting, i)
		}
	}
	transport.DoGrouped(ctx, len(waiting), func(_ context.Context, i int) error { // with ctx none of them is in the group
		i = waiting[i]
		attempts[i], errs[i] = onces[i].Begin(ctx)
		return nil
	})
	handed = true
	return attempts, errs
}
