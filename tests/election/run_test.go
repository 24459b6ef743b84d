package election_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRunReturns what its function returned, and frees leadership only then.
func TestRunReturns(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for _, want := range []error{nil, errors.New("mine")} {
		led, answer, done := runLater(context.Background(), locks.Election("name"))
		leading := awaitContext(t, led)
		if _, err := locks.Election("name", core.WithWait(0)).Campaign(context.Background()); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("beside the leader: %v", err)
		}
		answer <- want
		if err := coretest.Receive(t, done); err != want {
			t.Errorf("Run returned %v, want %v", err, want)
		}
		if leading.Err() == nil {
			t.Error("the context of the leader outlives its term")
		}
		coretest.Resign(t, coretest.MustCampaign(t, locks.Election("name", core.WithWait(0))))
	}
}

// TestRunEndsItsContextFirst lets a leader leave a goroutine behind: its context has ended when the next leader has won.
func TestRunEndsItsContextFirst(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	led, answer, done := runLater(context.Background(), locks.Election("name"))
	left, cancel := context.WithCancel(awaitContext(t, led))
	defer cancel()
	next := coretest.CampaignLater(t, locks.Election("name"))
	coretest.AwaitQueue(t, locks, "name", 1)
	answer <- nil
	lead := coretest.AwaitLead(t, next)
	if left.Err() == nil {
		t.Error("two contexts of leaders are valid")
	}
	coretest.Resign(t, lead)
	if err := coretest.Receive(t, done); err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// TestRunAfterALoss force-releases a leader's lock: Run waits for the function, drops what it returned, and campaigns again.
func TestRunAfterALoss(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	logged := new(coretest.Record)
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(600*time.Millisecond), core.WithLogger(coretest.TextLogger(logged)))
	led, answer, done := runLater(ctx, locks.Election("name"))
	last := int64(0)
	for range 3 {
		leading := awaitContext(t, led)
		if term := termOf(t, leading); term <= last {
			t.Errorf("term %d came after %d", term, last)
		} else {
			last = term
		}
		if _, err := coretest.NewClient(t, rdb).ForceUnlock(ctx, "name"); err != nil {
			t.Fatal(err)
		}
		coretest.WaitFor(t, leading.Done(), "the leader to be told")
		coretest.WantErr(t, context.Cause(leading), core.ErrLeaseLost)
		info, err := locks.Inspect(ctx, "name")
		if err != nil || len(info.Holders)+len(info.Queue) > 0 {
			t.Errorf("it campaigns while its function runs: %+v, %v", info, err)
		}
		answer <- errors.New("something else")
	}
	leading := awaitContext(t, led)
	cancel()
	coretest.WaitFor(t, leading.Done(), "the end of the context")
	mine := errors.New("mine")
	answer <- mine
	if err := coretest.Receive(t, done); !errors.Is(err, mine) { // also a loss, if a slow machine had one meanwhile
		t.Errorf("Run returned %v", err)
	}
	if text := logged.String(); !containsLine(text, "leader returned an error after leadership was lost", "something else") {
		t.Errorf("the error after a loss was not logged: %s", text)
	}
}

// TestRunEndsWithItsContext: during a campaign, and during a lead.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	lead := coretest.MustCampaign(t, locks.Election("name"))
	ctx, cancel := context.WithCancelCause(context.Background())
	_, _, done := runLater(ctx, locks.Election("name"))
	coretest.AwaitQueue(t, locks, "name", 1)
	enough := errors.New("enough")
	cancel(enough)
	err := coretest.Receive(t, done)
	coretest.WantErr(t, err, core.ErrNotAcquired)
	coretest.WantErr(t, err, context.Canceled)
	coretest.WantErr(t, err, enough)
	coretest.Resign(t, lead)
}

// TestRunAbandons leadership for a function that panics or ends its goroutine: what it has started may still be at work.
func TestRunAbandons(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"panic": func() { panic("mine") }, "Goexit": runtime.Goexit} {
		rdb := testkit.Start(t).Client()
		const ttl = time.Second
		locks := coretest.NewClient(t, rdb, core.WithTTL(ttl))
		began := time.Now()
		var leading context.Context
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			_ = locks.Election("name").Run(context.Background(), func(ctx context.Context) error {
				leading = ctx
				end()
				return nil
			})
		}()
		if p := <-done; name == "panic" && p != "mine" {
			t.Errorf("the panic is %v", p)
		}
		if leading.Err() == nil {
			t.Errorf("%s: the context of the leader goes on", name)
		}
		left := rdb.PTTL(context.Background(), "lock:name").Val()
		if left <= 0 && time.Since(began) < ttl { // later it has expired, on a slow machine
			t.Errorf("%s: leadership was freed", name)
		}
		coretest.Gone(t, rdb, "lock:name")
	}
}

// TestRunOutlastsOutages: a leader keeps its leadership through a short outage, loses it in a long one within its TTL, and leads
// again afterwards.
func TestRunOutlastsOutages(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	server := testkit.Start(t)
	relay := server.Relay()
	logged := new(coretest.Record)
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(ttl), core.WithLogger(coretest.TextLogger(logged)))
	led, answer, done := runLater(context.Background(), locks.Election("name"))
	leading := awaitContext(t, led)

	failed := time.Now()
	relay.Refuse(true)
	relay.Reset()
	testkit.Eventually(t, coretest.Within, "a renewal to fail", func() bool {
		return containsLine(logged.String(), "renewal failed") || leading.Err() != nil
	})
	relay.Refuse(false)
	if short := time.Since(failed) < ttl*2/3; short {
		testkit.Eventually(t, coretest.Within, "renewals to succeed", func() bool {
			return containsLine(logged.String(), "succeed again") || leading.Err() != nil
		})
		if leading.Err() != nil {
			t.Errorf("leadership did not outlast a short outage: %v", context.Cause(leading))
		}
	}
	relay.Refuse(true)
	relay.Reset()
	coretest.WaitFor(t, leading.Done(), "leadership to end")
	answer <- nil
	testkit.Eventually(t, coretest.Within, "a campaign to fail", func() bool { return containsLine(logged.String(), "campaign failed") })
	relay.Refuse(false)
	if again := awaitContext(t, led); termOf(t, again) <= termOf(t, leading) {
		t.Errorf("term %d came after %d", termOf(t, again), termOf(t, leading))
	}
	answer <- nil
	if err := coretest.Receive(t, done); err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// TestRunOfAClosedClient ends.
func TestRunOfAClosedClient(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	led, answer, done := runLater(context.Background(), locks.Election("name"))
	leading := awaitContext(t, led)
	closed := make(chan error, 1)
	go func() { closed <- locks.Close() }()
	coretest.WaitFor(t, leading.Done(), "leadership to end")
	answer <- nil
	coretest.WantErr(t, coretest.Receive(t, done), core.ErrClosed)
	if err := coretest.Receive(t, closed); err != nil {
		t.Errorf("Close returned %v", err)
	}
	e := locks.Election("name")
	_, err := e.Leader(context.Background())
	coretest.WantErr(t, err, core.ErrClosed)
	coretest.WantErr(t, e.Run(context.Background(), leadNot), core.ErrClosed)
	for range e.Observe(context.Background()) {
		t.Error("a closed client observes")
	}
	coretest.Resign(t, coretest.MustCampaign(t, coretest.NewClient(t, server.Client()).Election("name")))
}
