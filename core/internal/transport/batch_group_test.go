package transport

import (
	"context"
	"testing"
	"time"
)

// TestGroupInsideAnother: a member of a batch group that starts a group of its own does not delay the outer group. A Multi
// that is a member of another Multi does that.
func TestGroupInsideAnother(t *testing.T) {
	t.Parallel()
	q := newBatchQueue(1, func(batch []*Command) {
		for _, c := range batch {
			c.Done(c)
		}
	})
	answered := make(chan struct{})
	DoGrouped(context.Background(), 2, func(ctx context.Context, i int) error {
		if i == 0 {
			submit(ctx, q, &Command{Done: func(*Command) { close(answered) }})
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
