package transport

import (
	"context"
	"testing"
	"time"
)

// TestGroupInsideAnother: what is sent in a batch group of its own, as the members of a lease that is itself a member do,
// holds up nobody in the outer one while it waits for answers.
func TestGroupInsideAnother(t *testing.T) {
	t.Parallel()
	l := newBatchQueue(1, func(batch []*Command) {
		for _, c := range batch {
			c.Done(c)
		}
	})
	answered := make(chan struct{})
	DoGrouped(context.Background(), 2, func(ctx context.Context, i int) error {
		if i == 0 {
			submit(ctx, l, &Command{Done: func(*Command) { close(answered) }})
			return nil
		}
		DoGrouped(ctx, 2, func(context.Context, int) error {
			select {
			case <-answered:
			case <-time.After(10 * time.Second):
				t.Error("the outer group has not sent")
			}
			return nil
		})
		return nil
	})
}
