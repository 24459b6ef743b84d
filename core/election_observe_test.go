package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// wantTold checks which lead the observer is told of, and with which value. A nil lead is a vacancy.
func wantTold(t testing.TB, got core.Leader, lead *core.Leadership, value string) {
	t.Helper()
	switch {
	case lead == nil && got.Owner != "":
		t.Errorf("the observer is told of %+v, want no leader", got)
	case lead != nil && (got.Owner == "" || got.Term != lead.Term() || got.Value != value):
		t.Errorf("the observer is told of %+v, want term %d and %q", got, lead.Term(), value)
	}
}

// TestObserve tells of vacancies, leaders and values, in order, to a client without a candidate.
func TestObserve(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	e := locks.Election("name", core.WithValue("first"))
	next := observe(t, newClient(t, server.Client()).Election("name"))
	wantTold(t, next(), nil, "")
	lead := mustCampaign(t, e)
	wantTold(t, next(), lead, "first")
	proclaim(t, lead, "second")
	wantTold(t, next(), lead, "second")
	successor := campaignLater(t, locks.Election("name", core.WithValue("third")))
	awaitQueue(t, locks, "name", 1)
	resign(t, lead)
	after := awaitLead(t, successor)
	wantTold(t, next(), after, "third") // without a vacancy
	resign(t, after)
	vacant := next()
	wantTold(t, vacant, nil, "")
	if vacant.Term != after.Term() {
		t.Errorf("the vacancy after term %d has term %d", after.Term(), vacant.Term)
	}
}

// TestObserveByMessage changes a value so often that polls alone would take minutes.
func TestObserveByMessage(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	next := observe(t, locks.Election("name"))
	wantTold(t, next(), nil, "")
	began := time.Now()
	const changes = 60
	lead := mustCampaign(t, locks.Election("name"))
	wantTold(t, next(), lead, "")
	for i := range changes {
		proclaim(t, lead, fmt.Sprint(i))
		wantTold(t, next(), lead, fmt.Sprint(i))
	}
	resign(t, lead)
	wantTold(t, next(), nil, "")
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
	logged := new(record)
	locks := newClient(t, rdb, core.WithLogger(textLogger(logged)))
	next := observe(t, locks.Election("name"))
	wantTold(t, next(), nil, "")
	lead := mustCampaign(t, locks.Election("name", core.WithValue("value")))
	wantTold(t, next(), lead, "value")
	resign(t, lead)
	wantTold(t, next(), nil, "")
	if !containsLine(logged.String(), "refuses PUBLISH") {
		t.Error("nothing was logged")
	}
}

// TestObserveIsNewestOnly lets a loop sleep through ten values and a term.
func TestObserveIsNewestOnly(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	lead := mustCampaign(t, locks.Election("name"))
	next := observe(t, locks.Election("name"))
	wantTold(t, next(), lead, "")
	for i := range 10 {
		proclaim(t, lead, fmt.Sprint(i))
	}
	resign(t, lead)
	lead = mustCampaign(t, locks.Election("name", core.WithValue("newest")))
	wantTold(t, next(), lead, "newest")
	resign(t, lead)
}

// TestObserveExpiry: an observer learns of a leader that died although nothing is published.
func TestObserveExpiry(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	lead := mustCampaign(t, newClient(t, relay.Client(), core.WithTTL(5*time.Second)).Election("name"))
	next := observe(t, newClient(t, server.Client()).Election("name"))
	wantTold(t, next(), lead, "")
	relay.Drop(testkit.Both)
	wantTold(t, next(), nil, "")
	waitFor(t, lead.Context().Done(), "the lead to end")
}

// TestObserveNeverGoesBack puts the state of an earlier term, and of an earlier value, back into Redis, as a replica may
// have it.
func TestObserveNeverGoesBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := newClient(t, rdb)
	reads := func() int64 { return server.CommandStats()["evalsha"].Calls }
	dump := func() string { return rdb.Dump(ctx, "lock:name").Val() }
	restore := func(state string) {
		if err := rdb.RestoreReplace(ctx, "lock:name", long, state).Err(); err != nil {
			t.Fatal(err)
		}
		before := reads()
		rdb.Publish(ctx, "redisson_lock__channel:{lock:name}:leader", "0")
		testkit.Eventually(t, within, "the observer to read that", func() bool { return reads() > before })
	}
	old := mustCampaign(t, locks.Election("name", core.WithValue("old")))
	oldTerm := dump()
	resign(t, old)
	lead := mustCampaign(t, locks.Election("name", core.WithValue("first")))
	first := dump()
	proclaim(t, lead, "second")
	second := dump()
	next := observe(t, locks.Election("name"))
	wantTold(t, next(), lead, "second")
	told := make(chan core.Leader, 1)
	go func() { told <- next() }()
	restore(oldTerm)
	restore(first)
	restore(second)
	proclaim(t, lead, "third")
	wantTold(t, <-told, lead, "third")
	resign(t, lead)
}

// TestObserveEnds with its context, with a break, and with its client, even if the loop itself closes that.
func TestObserveEnds(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
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

// TestObserveThroughAnOutage: an observer goes on, and logs the outage once.
func TestObserveThroughAnOutage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	logged := new(record)
	locks := newClient(t, server.Client())
	next := observe(t, newClient(t, relay.Client(), core.WithLogger(textLogger(logged))).Election("name"))
	wantTold(t, next(), nil, "")
	relay.Refuse(true)
	relay.Reset()
	told := make(chan core.Leader, 1)
	go func() { told <- next() }()
	testkit.Eventually(t, within, "the outage to be logged", func() bool { return containsLine(logged.String(), "leader not known") })
	lead := mustCampaign(t, locks.Election("name", core.WithValue("value")))
	relay.Refuse(false)
	wantTold(t, <-told, lead, "value")
	if n := strings.Count(logged.String(), "leader not known"); n != 1 {
		t.Errorf("the outage was logged %d times", n)
	}
	resign(t, lead)
}

// TestObserversAreNoWaiters: what Inspect counts are candidates.
func TestObserversAreNoWaiters(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	lead := mustCampaign(t, locks.Election("name"))
	next := observe(t, locks.Election("name"))
	wantTold(t, next(), lead, "")
	proclaim(t, lead, "value")
	wantTold(t, next(), lead, "value") // it has subscribed by then, or will have polled
	info, err := locks.Inspect(context.Background(), "name")
	if err != nil || info.Waiters != 0 || info.Mode != core.ModeElection || info.Value != "value" || len(info.Holders) != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	resign(t, lead)
}

// TestLeaderOfAWrongType: the error tells the key.
func TestLeaderOfAWrongType(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	rdb.Set(ctx, "lock:name", "data", 0)
	e := newClient(t, rdb).Election("name")
	_, leader := e.Leader(ctx)
	_, campaign := e.Campaign(ctx)
	if err := errors.Join(leader, campaign); !errors.Is(leader, core.ErrWrongType) || !errors.Is(campaign, core.ErrWrongType) {
		t.Errorf("%v", err)
	}
}
