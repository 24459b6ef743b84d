package core_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestNotLeaderOnceTheWorkIsCancelled: at a loss, the contexts of the work end one by one. The first one that ends finds no
// leader any more, and starts no work.
func TestNotLeaderOnceTheWorkIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, rdb := context.Background(), testkit.Start(t).Client()
	e := coretest.NewClient(t, rdb).Election("name")
	lead := coretest.MustCampaign(t, e)
	told := make(chan error, 2)
	core.AtLoss(lead, func(error) {
		told <- e.IsLeader(ctx)
		told <- e.TryDo(ctx, func(context.Context) error { return nil })
	})
	if _, err := coretest.NewClient(t, rdb).ForceUnlock(ctx, "name"); err != nil {
		t.Fatal(err)
	}
	coretest.WantErr(t, lead.Proclaim(ctx, "value"), core.ErrNotHeld)
	coretest.WantErr(t, coretest.Receive(t, told), core.ErrNotLeader)
	coretest.WantErr(t, coretest.Receive(t, told), core.ErrNotLeader)
}
