package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestResignElectsTheNext keeps a candidate from hearing and asking: the script of the resignation elects it all the same.
func TestResignElectsTheNext(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	relay := server.Relay()
	lead := mustCampaign(t, locks.Election("name"))
	before := mustLeader(t, locks.Election("name"))
	next := campaignLater(t, newClient(t, relay.Client()).Election("name"))
	awaitQueue(t, locks, "name", 1)
	relay.Hold(testkit.ToServer)
	resign(t, lead)
	found := mustLeader(t, locks.Election("name"))
	if found.Owner == before.Owner || found.Term <= before.Term {
		t.Errorf("after the resignation of %+v, %+v leads", before, found)
	}
	relay.Heal()
	resign(t, awaitLead(t, next))
}

// TestResignTwice resigns while Redis does not answer, and again when it does.
func TestResignTwice(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client(), core.WithTTL(long))
	lead := mustCampaign(t, locks.Election("name"))
	server.Pause()
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		wantErr(t, lead.Resign(ctx), core.ErrUnavailable)
		cancel()
	}
	wantErr(t, context.Cause(lead.Context()), core.ErrNotHeld)
	server.Resume()
	resign(t, lead)
	_, err := locks.Election("name").Leader(context.Background())
	wantErr(t, err, core.ErrNoLeader)
	wantErr(t, lead.Resign(context.Background()), core.ErrNotHeld)
}

// TestResignAfterALoss: the hold of a lost lead stays until the work has stopped, for its TTL at most.
func TestResignAfterALoss(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	relay := server.Relay()
	rdb := server.Client()
	const ttl = 9 * time.Second // of which a quarter is left for the looks below
	e := newClient(t, relay.Client(), core.WithTTL(ttl)).Election("name")
	lead := mustCampaign(t, e)
	other := newClient(t, rdb).Election("name", core.WithWait(0))
	first := rdb.HGet(ctx, "lock:name", "exclusive_until").Val()
	testkit.Eventually(t, within, "a renewal, so that Redis knows its script", func() bool {
		return rdb.HGet(ctx, "lock:name", "exclusive_until").Val() != first
	})
	relay.Hold(testkit.ToClient) // renewals arrive, their answers do not
	var expires time.Time        // at the last look before the lead ended
	testkit.Eventually(t, within, "the lead to end", func() bool {
		expires = time.Now().Add(rdb.PTTL(ctx, "lock:name").Val())
		return lead.Context().Err() != nil
	})
	waitFor(t, lead.Context().Done(), "the lead to end")
	wantErr(t, context.Cause(lead.Context()), core.ErrLeaseLost)
	relay.Heal()
	testkit.Eventually(t, within, "a moment of its time", func() bool { return time.Until(expires) < ttl/4 })
	switch left := rdb.PTTL(ctx, "lock:name").Val(); {
	case time.Until(expires) < 0:
		t.Skip("this machine is too slow")
	case left < 0:
		t.Error("the lead was freed before the work had stopped")
	}
	if err := newClient(t, relay.Client()).Election("name", core.WithWait(0)).Run(ctx, leadNot); err == nil {
		t.Error("another candidate led before the work had stopped")
	}
	wantErr(t, lead.Resign(ctx), core.ErrNotHeld)
	gone(t, rdb, "lock:name")
	resign(t, mustCampaign(t, other))
}

func leadNot(context.Context) error { return nil }
