package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestObserve tells of vacancies, leaders and values, in order, to a client without a candidate.
func TestObserve(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	e := locks.Election("name", core.WithValue("first"))
	next := coretest.Observe(t, coretest.NewClient(t, server.Client()).Election("name"))
	coretest.WantTold(t, next(), nil, "")
	lead := coretest.MustCampaign(t, e)
	coretest.WantTold(t, next(), lead, "first")
	coretest.Proclaim(t, lead, "second")
	coretest.WantTold(t, next(), lead, "second")
	successor := coretest.CampaignLater(t, locks.Election("name", core.WithValue("third")))
	coretest.AwaitQueue(t, locks, "name", 1)
	coretest.Resign(t, lead)
	after := coretest.AwaitLead(t, successor)
	coretest.WantTold(t, next(), after, "third") // without a vacancy
	coretest.Resign(t, after)
	vacant := next()
	coretest.WantTold(t, vacant, nil, "")
	if vacant.Term != after.Term() {
		t.Errorf("the vacancy after term %d has term %d", after.Term(), vacant.Term)
	}
}

// TestObserveByMessage changes a value so often that polls alone would take minutes.
func TestObserveByMessage(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	next := coretest.Observe(t, locks.Election("name"))
	coretest.WantTold(t, next(), nil, "")
	began := time.Now()
	const changes = 60
	lead := coretest.MustCampaign(t, locks.Election("name"))
	coretest.WantTold(t, next(), lead, "")
	for i := range changes {
		coretest.Proclaim(t, lead, fmt.Sprint(i))
		coretest.WantTold(t, next(), lead, fmt.Sprint(i))
	}
	coretest.Resign(t, lead)
	coretest.WantTold(t, next(), nil, "")
	if took := time.Since(began); took > changes*time.Second {
		t.Errorf("%d changes took %v: they are polled", changes, took)
	}
}

// TestObserveWithoutMessages takes the right to publish away: the observer polls.
func TestObserveWithoutMessages(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	if err := rdb.Do(ctx, "ACL", "SETUSER", "default", "-publish").Err(); err != nil {
		t.Fatal(err)
	}
	logged := new(coretest.Record)
	locks := coretest.NewClient(t, rdb, core.WithLogger(coretest.TextLogger(logged)))
	next := coretest.Observe(t, locks.Election("name"))
	coretest.WantTold(t, next(), nil, "")
	lead := coretest.MustCampaign(t, locks.Election("name", core.WithValue("value")))
	coretest.WantTold(t, next(), lead, "value")
	coretest.Resign(t, lead)
	coretest.WantTold(t, next(), nil, "")
	if !containsLine(logged.String(), "refuses PUBLISH") {
		t.Error("nothing was logged")
	}
}

// TestObserveIsNewestOnly lets a loop sleep through ten values and a term.
func TestObserveIsNewestOnly(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	lead := coretest.MustCampaign(t, locks.Election("name"))
	next := coretest.Observe(t, locks.Election("name"))
	coretest.WantTold(t, next(), lead, "")
	for i := range 10 {
		coretest.Proclaim(t, lead, fmt.Sprint(i))
	}
	coretest.Resign(t, lead)
	lead = coretest.MustCampaign(t, locks.Election("name", core.WithValue("newest")))
	coretest.WantTold(t, next(), lead, "newest")
	coretest.Resign(t, lead)
}

// TestObserveExpiry: an observer learns of a leader that died although nothing is published.
func TestObserveExpiry(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	lead := coretest.MustCampaign(t, coretest.NewClient(t, relay.Client(), core.WithTTL(5*time.Second)).Election("name"))
	next := coretest.Observe(t, coretest.NewClient(t, server.Client()).Election("name"))
	coretest.WantTold(t, next(), lead, "")
	relay.Drop(testkit.Both)
	coretest.WantTold(t, next(), nil, "")
	coretest.WaitFor(t, lead.Context().Done(), "leadership to end")
}

// TestObserveTermsOnlyGrow puts the state of an earlier term, and of an earlier value, back into Redis, as a replica may
// have it.
func TestObserveTermsOnlyGrow(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, rdb)
	reads := func() int64 { return server.CommandStats()["evalsha"].Calls }
	dump := func() string { return rdb.Dump(ctx, "lock:name").Val() }
	restore := func(state string) {
		if err := rdb.RestoreReplace(ctx, "lock:name", coretest.Long, state).Err(); err != nil {
			t.Fatal(err)
		}
		before := reads()
		rdb.Publish(ctx, "redisson_lock__channel:{lock:name}:leader", "0")
		testkit.Eventually(t, coretest.Within, "the observer to read that", func() bool { return reads() > before })
	}
	old := coretest.MustCampaign(t, locks.Election("name", core.WithValue("old")))
	oldTerm := dump()
	coretest.Resign(t, old)
	lead := coretest.MustCampaign(t, locks.Election("name", core.WithValue("first")))
	first := dump()
	coretest.Proclaim(t, lead, "second")
	second := dump()
	next := coretest.Observe(t, locks.Election("name"))
	coretest.WantTold(t, next(), lead, "second")
	told := make(chan core.Leader, 1)
	go func() { told <- next() }()
	restore(oldTerm)
	restore(first)
	restore(second)
	coretest.Proclaim(t, lead, "third")
	coretest.WantTold(t, <-told, lead, "third")
	coretest.Resign(t, lead)
}

// TestObserveEnds with its context, with a break, and with its client, even if the loop itself closes that.
func TestObserveEnds(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := 0
	for range locks.Election("name").Observe(ctx) {
		told++
		time.AfterFunc(10*time.Millisecond, cancel)
	}
	for range locks.Election("name").Observe(ctx) {
		told++ // not with a context that has ended
	}
	for range locks.Election("name").Observe(context.Background()) {
		told++
		break
	}
	for range locks.Election("name").Observe(context.Background()) {
		told++
		if err := locks.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if told != 3 {
		t.Errorf("the loops were told %d times, want 3", told)
	}
}

// TestObserveThroughAnOutage: an observer continues, and logs the outage once.
func TestObserveThroughAnOutage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	logged := new(coretest.Record)
	locks := coretest.NewClient(t, server.Client())
	next := coretest.Observe(t, coretest.NewClient(t, relay.Client(), core.WithLogger(coretest.TextLogger(logged))).Election("name"))
	coretest.WantTold(t, next(), nil, "")
	relay.Refuse(true)
	relay.Reset()
	told := make(chan core.Leader, 1)
	go func() { told <- next() }()
	testkit.Eventually(t, coretest.Within, "the outage to be logged", func() bool { return containsLine(logged.String(), "leader unknown") })
	lead := coretest.MustCampaign(t, locks.Election("name", core.WithValue("value")))
	relay.Refuse(false)
	coretest.WantTold(t, <-told, lead, "value")
	if n := strings.Count(logged.String(), "leader unknown"); n != 1 {
		t.Errorf("the outage was logged %d times", n)
	}
	coretest.Resign(t, lead)
}

// TestObserversAreNoWaiters: what Inspect counts are candidates.
func TestObserversAreNoWaiters(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	lead := coretest.MustCampaign(t, locks.Election("name"))
	next := coretest.Observe(t, locks.Election("name"))
	coretest.WantTold(t, next(), lead, "")
	coretest.Proclaim(t, lead, "value")
	coretest.WantTold(t, next(), lead, "value") // it has subscribed by then, or will have polled
	info, err := locks.Inspect(context.Background(), "name")
	if err != nil || info.Waiters != 0 || info.Mode != core.ModeElection || info.Value != "value" || len(info.Holders) != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	coretest.Resign(t, lead)
}

// TestLeaderOfAWrongType: the error tells the key.
func TestLeaderOfAWrongType(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	rdb.Set(ctx, "lock:name", "data", 0)
	e := coretest.NewClient(t, rdb).Election("name")
	_, leader := e.Leader(ctx)
	_, campaign := e.Campaign(ctx)
	if err := errors.Join(leader, campaign); !errors.Is(leader, core.ErrWrongType) || !errors.Is(campaign, core.ErrWrongType) {
		t.Errorf("%v", err)
	}
}
