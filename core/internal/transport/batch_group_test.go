package transport

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestGroupInsideAnother: a member of a batch group that starts a group of its own does not delay the outer group. A Multi
// that is a member of another Multi does that.
func TestGroupInsideAnother(t *testing.T) {
	t.Parallel()
	q := newBatchQueue(1, func([]*Command) {}, noWait)
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

// TestGroupWaitsNotForever: a member that waits for the answer to the command of another one, outside of Redis, keeps no
// command of the group for longer than maxGroupWait. What it submits afterwards is sent at once.
func TestGroupWaitsNotForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		q := newBatchQueue(1, func(batch []*Command) { sizes = append(sizes, len(batch)) }, noWait)
		began := time.Now()
		answered := make(chan struct{}, 2)
		DoGrouped(context.Background(), 3, func(ctx context.Context, i int) error {
			if i == 2 {
				select {
				case <-answered:
				case <-time.After(time.Minute):
					t.Error("the group has not sent")
				}
			}
			submit(ctx, q, &Command{Done: func(*Command) { answered <- struct{}{} }})
			return nil
		})
		synctest.Wait()
		if took := time.Since(began); took != maxGroupWait || !slices.Equal(sizes, []int{2, 1}) {
			t.Errorf("batches of %d after %v", sizes, took)
		}
	})
}

// TestDirectPathAfterGroup: the first command of a member goes with its group, and later ones with the context of the member, such as
// those of a lease, may go directly.
func TestDirectPathAfterGroup(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	e := NewExecutor(rdb, Background{}, nil)
	e.UseDirectPath()
	e.direct.observeRTT(e.direct.now(), true)
	direct := func(ctx context.Context) bool {
		c := &Command{ctx: ctx, node: e.Nodes.only}
		reserved := e.direct.tryReserve(c, e.direct.now())
		if reserved {
			c.node.commands.unreserve()
		}
		return reserved
	}
	DoGrouped(t.Context(), 2, func(ctx context.Context, i int) error {
		if i == 1 {
			return nil
		}
		if direct(ctx) {
			t.Error("the first command of a member leaves without its group")
		}
		if LeaveGroup(ctx); !direct(ctx) {
			t.Error("a later command is kept from the direct path")
		}
		return nil
	})
}
