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

// TestElectionTurns lets three processes campaign. They lead in the order of arrival, with rising terms, and no context of a
// leader is valid when the next one has won.
func TestElectionTurns(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	lead := coretest.MustCampaign(t, locks.Election("name", core.WithValue("0")))
	var next []<-chan *core.Leadership
	for i := range 3 {
		next = append(next, coretest.CampaignLater(t, coretest.NewClient(t, server.Client()).Election("name", core.WithValue(fmt.Sprint(i+1)))))
		coretest.AwaitQueue(t, locks, "name", i+1)
	}
	for i := range next {
		found := coretest.MustLeader(t, locks.Election("name"))
		if found.Value != fmt.Sprint(i) || found.Term != lead.Term() || found.TTL <= 0 || found.Since.After(time.Now()) {
			t.Errorf("leader %d of term %d is told as %+v", i, lead.Term(), found)
		}
		if term := termOf(t, lead.Context()); term != lead.Term() {
			t.Errorf("the context carries %d in term %d", term, lead.Term())
		}
		coretest.Resign(t, lead)
		after := coretest.AwaitLead(t, next[i])
		coretest.WantErr(t, context.Cause(lead.Context()), core.ErrNotHeld)
		if after.Term() <= lead.Term() {
			t.Errorf("term %d came after %d", after.Term(), lead.Term())
		}
		lead = after
	}
	coretest.Resign(t, lead)
	coretest.WantErr(t, lead.Resign(context.Background()), core.ErrNotHeld)
	coretest.WantErr(t, lead.Proclaim(context.Background(), "late"), core.ErrNotHeld)
	_, err := locks.Election("name").Leader(context.Background())
	coretest.WantErr(t, err, core.ErrNoLeader)
	coretest.AwaitTidy(t, server.Client())
}

// TestElectionOfOneValue lets eight goroutines campaign with the same Election: each is a candidate, and one leads.
func TestElectionOfOneValue(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	e := locks.Election("name")
	first := coretest.MustCampaign(t, e)
	leads := make(chan *core.Leadership, 8)
	for range cap(leads) {
		go func() {
			if l, err := e.Campaign(context.Background()); err == nil {
				leads <- l
			}
		}()
	}
	coretest.AwaitQueue(t, locks, "name", cap(leads))
	last := first
	for i := range cap(leads) {
		if err := e.IsLeader(context.Background()); err != nil || len(leads) > 0 {
			t.Errorf("IsLeader says %v while %d others lead", err, len(leads))
		}
		coretest.Resign(t, last)
		next := coretest.AwaitLead(t, leads)
		if next.Term() <= last.Term() {
			t.Errorf("term %d came after %d, as number %d", next.Term(), last.Term(), i)
		}
		last = next
	}
	coretest.Resign(t, last)
	coretest.WantErr(t, e.IsLeader(context.Background()), core.ErrNotLeader)
}

// TestElectionTermsAfterFlush lets Redis lose everything: the next term is greater all the same, and the old leader learns
// of its end by its own proclamation.
func TestElectionTermsAfterFlush(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	old := coretest.MustCampaign(t, locks.Election("name"))
	rdb.FlushAll(ctx)
	e := coretest.NewClient(t, rdb).Election("name", core.WithValue("next"))
	next := coretest.MustCampaign(t, e)
	if next.Term() <= old.Term() {
		t.Errorf("term %d came after %d", next.Term(), old.Term())
	}
	coretest.WantErr(t, old.Proclaim(ctx, "old"), core.ErrNotHeld)
	coretest.WantErr(t, context.Cause(old.Context()), core.ErrLeaseLost)
	if l := coretest.MustLeader(t, e); l.Value != "next" || l.Term != next.Term() {
		t.Errorf("the leader is %+v", l)
	}
	coretest.Resign(t, next)
}

// TestElectionInput: what is wrong with a name, an option or a value is said before anything is sent.
func TestElectionInput(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	for text, e := range map[string]*core.Election{
		"empty":         locks.Election(""),
		"not balanced":  locks.Election("a{"),
		"WithOwner":     locks.Election("name", core.WithOwner("me")),
		"WithMinHold":   locks.Election("name", core.WithMinHold(time.Second)),
		"WithTTL":       locks.Election("name", core.WithTTL(time.Millisecond)),
		"4097 bytes":    locks.Election("name", core.WithValue(strings.Repeat("x", 4097))),
		"no valid UTF-": locks.Election("name", core.WithValue("\xff")),
	} {
		_, campaign := e.Campaign(ctx)
		_, leader := e.Leader(ctx)
		run := e.Run(ctx, func(context.Context) error { t.Errorf("%s: it leads", text); return nil })
		for range e.Observe(ctx) {
			t.Errorf("%s: it is observed", text)
		}
		for _, err := range []error{campaign, leader, run, e.IsLeader(ctx)} {
			if !errors.Is(err, core.ErrInvalidName) && !errors.Is(err, core.ErrInvalidOption) || !strings.Contains(err.Error(), text) {
				t.Errorf("%v does not tell %q", err, text)
			}
		}
	}
	coretest.WantInvalid(t, locks.Election("name").Run(ctx, nil), core.ErrInvalidOption, "function")
	if n := server.CommandStats()["evalsha"].Calls + server.CommandStats()["eval"].Calls; n != 0 {
		t.Errorf("%d scripts ran", n)
	}
	// The client's own defaults are for its locks.
	defaults := coretest.NewClient(t, server.Client(), core.WithOwner("me"), core.WithMinHold(coretest.Long))
	lead := coretest.MustCampaign(t, defaults.Election("name", nil, core.WithValue(strings.Repeat("x", 4096))))
	coretest.WantInvalid(t, lead.Proclaim(ctx, strings.Repeat("x", 4097)), core.ErrInvalidOption, "Proclaim")
	coretest.Resign(t, lead)
	coretest.Resign(t, coretest.MustCampaign(t, defaults.Election("name")))
}

// TestElectionWithOwnContext campaigns with contexts that carry a hold of the same name. A second leader of one term would be
// a bug, and a candidate that waits for itself a deadlock.
func TestElectionWithOwnContext(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server, elsewhere := testkit.Start(t), testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	e := locks.Election("name")
	lead := coretest.MustCampaign(t, e)
	if _, err := e.Campaign(lead.Context()); !errors.Is(err, core.ErrLeading) {
		t.Fatalf("campaign of the leader: %v", err)
	}
	coretest.WantErr(t, locks.Election("name").Run(lead.Context(), func(context.Context) error { return nil }), core.ErrLeading)
	other, err := coretest.NewClient(t, elsewhere.Client()).Election("name").Campaign(lead.Context())
	if err != nil {
		t.Fatalf("campaign in another Redis: %v", err)
	}
	coretest.Resign(t, other)
	coretest.Resign(t, lead)
	next, err := e.Campaign(context.WithoutCancel(lead.Context()))
	if err != nil || next.Term() <= lead.Term() {
		t.Fatalf("after the resignation: %v", err)
	}
	coretest.Resign(t, next)

	lease := coretest.MustLock(t, locks.Mutex("name"))
	_, err = e.Campaign(lease.Context())
	coretest.WantErr(t, err, core.ErrLeading)
	_, err = e.Leader(ctx)
	coretest.WantErr(t, err, core.ErrNoLeader)
	coretest.Unlock(t, lease)
}

// TestIsLeader asks Elections that lead and others, while Redis replies and while it does not.
func TestIsLeader(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(2*time.Second))
	e, other := locks.Election("name"), locks.Election("name")
	coretest.WantErr(t, e.IsLeader(ctx), core.ErrNotLeader)
	led, answer, done := runLater(ctx, e)
	leading := awaitContext(t, led)
	if err := e.IsLeader(ctx); err != nil {
		t.Errorf("the leader: %v", err)
	}
	coretest.WantErr(t, other.IsLeader(ctx), core.ErrNotLeader)

	server.Pause()
	if err := e.IsLeader(ctx); err != nil {
		t.Errorf("with a valid context: %v", err)
	}
	coretest.WaitFor(t, leading.Done(), "leadership to end")
	coretest.WantErr(t, e.IsLeader(ctx), core.ErrNotLeader)
	server.Resume()
	answer <- nil
	again := awaitContext(t, led)
	if err := e.IsLeader(ctx); err != nil || termOf(t, again) <= termOf(t, leading) {
		t.Errorf("the leader of the next term %d: %v", termOf(t, again), err)
	}
	answer <- nil
	if err := coretest.Receive(t, done); err != nil {
		t.Errorf("Run returned %v", err)
	}
	coretest.WantErr(t, e.IsLeader(ctx), core.ErrNotLeader)
}

// TestElectionMaxHold limits a term: it ends, and the next one follows.
func TestElectionMaxHold(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for name, limit := range map[string]core.LockOption{
		"max hold": core.WithMaxHold(100 * time.Millisecond), "fixed TTL": core.WithFixedTTL(100 * time.Millisecond),
	} {
		e := locks.Election(name, core.WithTTL(300*time.Millisecond), limit)
		before := time.Now()
		first := coretest.MustCampaign(t, e)
		coretest.WaitFor(t, first.Context().Done(), "the term to end")
		if until := first.ValidUntil(); until.Before(before) || until.After(time.Now()) {
			t.Errorf("%s: a term that has ended is valid until %v", name, until)
		}
		coretest.WantErr(t, context.Cause(first.Context()), core.ErrLeaseLost)
		second := coretest.MustCampaign(t, e)
		if second.Term() <= first.Term() {
			t.Errorf("%s: term %d came after %d", name, second.Term(), first.Term())
		}
		_ = second.Resign(context.Background())
	}
}

// TestElectionIgnoresLimitsOfItsClient: what a client sets for its locks ends neither the campaigns of its elections nor their terms.
func TestElectionIgnoresLimitsOfItsClient(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]core.Option{
		"wait":     {core.WithWait(0)},
		"max hold": {core.WithTTL(3 * time.Second), core.WithMaxHold(50 * time.Millisecond)},
		"fixed":    {core.WithFixedTTL(3 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks := coretest.NewClient(t, rdb, opts...)
			first := coretest.MustCampaign(t, locks.Election("name"))
			next := coretest.CampaignLater(t, locks.Election("name"))
			coretest.AwaitQueue(t, locks, "name", 1)
			until := first.ValidUntil()
			if name != "wait" {
				testkit.Eventually(t, coretest.Within, "the term is renewed or over", func() bool {
					return first.Context().Err() != nil || first.ValidUntil().Sub(until) > 500*time.Millisecond
				})
			}
			if err := first.Context().Err(); err != nil {
				t.Fatalf("the term has ended: %v", context.Cause(first.Context()))
			}
			coretest.Resign(t, first)
			coretest.Resign(t, coretest.AwaitLead(t, next))
		})
	}
}
