package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestResignElectsTheNext keeps a candidate from hearing and asking: the script of the resignation elects it all the same.
func TestResignElectsTheNext(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	relay := server.Relay()
	lead := coretest.MustCampaign(t, locks.Election("name"))
	before := coretest.MustLeader(t, locks.Election("name"))
	next := coretest.CampaignLater(t, coretest.NewClient(t, relay.Client()).Election("name"))
	coretest.AwaitQueue(t, locks, "name", 1)
	relay.Hold(testkit.ToServer)
	coretest.Resign(t, lead)
	found := coretest.MustLeader(t, locks.Election("name"))
	if found.Owner == before.Owner || found.Term <= before.Term {
		t.Errorf("after the resignation of %+v, %+v leads", before, found)
	}
	relay.Heal()
	coretest.Resign(t, coretest.AwaitLead(t, next))
}

// TestResignTwice resigns while Redis does not reply, and again when it does.
func TestResignTwice(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
	lead := coretest.MustCampaign(t, locks.Election("name"))
	server.Pause()
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		coretest.WantErr(t, lead.Resign(ctx), core.ErrUnavailable)
		cancel()
	}
	coretest.WantErr(t, context.Cause(lead.Context()), core.ErrNotHeld)
	server.Resume()
	coretest.Resign(t, lead)
	_, err := locks.Election("name").Leader(context.Background())
	coretest.WantErr(t, err, core.ErrNoLeader)
	coretest.WantErr(t, lead.Resign(context.Background()), core.ErrNotHeld)
}

// TestResignAfterALoss: the hold of a lost lead stays until the work has stopped, for its TTL at most.
func TestResignAfterALoss(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	relay := server.Relay()
	rdb := server.Client()
	const ttl = 9 * time.Second // of which a quarter is left for the looks below
	e := coretest.NewClient(t, relay.Client(), core.WithTTL(ttl)).Election("name")
	lead := coretest.MustCampaign(t, e)
	other := coretest.NewClient(t, rdb).Election("name", core.WithWait(0))
	first := rdb.HGet(ctx, "lock:name", "exclusive_until").Val()
	testkit.Eventually(t, coretest.Within, "a renewal, so that Redis knows its script", func() bool {
		return rdb.HGet(ctx, "lock:name", "exclusive_until").Val() != first
	})
	relay.Hold(testkit.ToClient) // renewals arrive, their answers do not
	var expires time.Time        // at the last look before leadership ended
	testkit.Eventually(t, coretest.Within, "leadership to end", func() bool {
		expires = time.Now().Add(rdb.PTTL(ctx, "lock:name").Val())
		return lead.Context().Err() != nil
	})
	coretest.WaitFor(t, lead.Context().Done(), "leadership to end")
	coretest.WantErr(t, context.Cause(lead.Context()), core.ErrLeaseLost)
	relay.Heal()
	testkit.Eventually(t, coretest.Within, "a moment of its time", func() bool { return time.Until(expires) < ttl/4 })
	switch left := rdb.PTTL(ctx, "lock:name").Val(); {
	case time.Until(expires) < 0:
		t.Skip("this machine is too slow")
	case left < 0:
		t.Error("leadership was freed before the work had stopped")
	}
	if err := coretest.NewClient(t, relay.Client()).Election("name", core.WithWait(0)).Run(ctx, leadNot); err == nil {
		t.Error("another candidate led before the work had stopped")
	}
	coretest.WantErr(t, lead.Resign(ctx), core.ErrNotHeld)
	coretest.Gone(t, rdb, "lock:name")
	coretest.Resign(t, coretest.MustCampaign(t, other))
}

func leadNot(context.Context) error { return nil }
