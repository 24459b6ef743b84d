package core_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestAbandonInsideDo: fn has returned, so the lock is free at once, and Do says what has happened.
func TestAbandonInsideDo(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	lease := coretest.MustLock(t, locks.Mutex("name"))
	err := core.RunUnder(context.Background(), lease, func(ctx context.Context) error {
		lease.Abandon()
		coretest.WaitFor(t, ctx.Done(), "the context to end")
		return context.Cause(ctx)
	})
	coretest.WantErr(t, err, core.ErrLeaseLost)
	coretest.Gone(t, rdb, "lock:name")
}
