package once_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// onceLoser is a client of Once whose replies get lost.
type onceLoser struct {
	*core.Once
	rdb     *redis.Client // past the relay
	renewed chan error
	lose    func()
}

// TestOnceLostReplies loses the reply to each kind of command on a client with go-redis's default options.
func TestOnceLostReplies(t *testing.T) {
	t.Parallel()
	for mode, how := range map[string]testkit.LossMode{"Silent": testkit.Silent, "Closed": testkit.Closed} {
		for step, test := range map[string]func(*testing.T, *onceLoser){
			"Begin": loseBegin, "Renew": loseOnceRenew, "Complete": loseComplete, "Release": loseOnceRelease,
			"Hold": loseHold, "Declare": loseDeclare, "Forget": loseForget, "Resolve": loseResolve,
		} {
			t.Run(step+mode, func(t *testing.T) {
				t.Parallel()
				server := testkit.Start(t)
				relay := server.Relay()
				log := &coretest.Record{}
				l := &onceLoser{rdb: server.Client(), renewed: make(chan error, 100)}
				l.lose = func() { relay.LoseReplies(coretest.RecordOf("name"), 1, how) }
				rdb := relay.Client()
				coretest.WarmPool(t, rdb)
				coretest.LoadOnce(t, rdb)
				locks := coretest.NewClient(t, rdb, core.WithTTL(6*time.Second), core.WithLogger(coretest.TextLogger(log)),
					core.WithHooks(core.Hooks{Renewed: func(_ context.Context, r core.Renewed) { l.renewed <- r.Err }}))
				l.Once = locks.Once("name")
				test(t, l)
				if n := relay.LostReplies(); n != 1 {
					t.Errorf("%d replies were lost", n)
				}
				if strings.Contains(log.String(), "PUBLISH") {
					t.Errorf("a repetition is taken for a missing right: %s", log.String())
				}
				wantExpiries(t, l.rdb)
			})
		}
	}
}

func loseBegin(t *testing.T, l *onceLoser) {
	l.lose()
	var ran atomic.Int64
	got, err := l.Do(context.Background(), coretest.Answers(&ran, "value"))
	if err != nil || got.Replayed || got.Attempt != 1 || ran.Load() != 1 {
		t.Errorf("%+v, %v, ran %d times", got, err, ran.Load())
	}
	coretest.WantState(t, l.Once, core.StateCompleted, 1)
}

func loseOnceRenew(t *testing.T, l *onceLoser) {
	a := coretest.MustBegin(t, l.Once)
	l.lose()
	for renewals := 0; renewals < 2; {
		select {
		case err := <-l.renewed:
			if err == nil {
				renewals++
			}
		case <-a.Context().Done():
			t.Fatalf("lost: %v", context.Cause(a.Context()))
		case <-time.After(coretest.Within):
			t.Fatal("no renewal")
		}
	}
	coretest.WantState(t, l.Once, core.StateRunning, 1)
}

func loseComplete(t *testing.T, l *onceLoser) {
	a := coretest.MustBegin(t, l.Once)
	l.lose()
	if err := a.Complete(context.Background(), []byte("value")); err != nil {
		t.Errorf("Complete: %v", err)
	}
	if r := coretest.WantState(t, l.Once, core.StateCompleted, 1); string(r.Value) != "value" {
		t.Errorf("%+v", r)
	}
}

func loseOnceRelease(t *testing.T, l *onceLoser) {
	a := coretest.MustBegin(t, l.Once)
	l.lose()
	if err := a.Release(context.Background()); err != nil {
		t.Errorf("Release: %v", err)
	}
	coretest.WantState(t, l.Once, core.StateNone, 1)
}

func loseHold(t *testing.T, l *onceLoser) {
	a := coretest.MustBegin(t, l.Once)
	l.lose()
	if err := a.Hold(context.Background(), "reason"); err != nil {
		t.Errorf("Hold: %v", err)
	}
	coretest.WantState(t, l.Once, core.StateUnknown, 1)
}

func loseDeclare(t *testing.T, l *onceLoser) {
	a := coretest.MustBegin(t, l.Once)
	l.lose()
	if err := a.Declare(context.Background(), core.StateUnknown); err != nil {
		t.Errorf("Declare: %v", err)
	}
	coretest.WantState(t, l.Once, core.StateRunning, 1)
	if outcome := contents(t, l.rdb, "name")["outcome_on_expiry"]; outcome != "unknown" {
		t.Errorf("counts as %q", outcome)
	}
}

func loseForget(t *testing.T, l *onceLoser) {
	if err := coretest.MustBegin(t, l.Once).Complete(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	seen := coretest.MustPeek(t, l.Once)
	l.lose()
	if err := l.Forget(context.Background(), seen); err != nil {
		t.Errorf("Forget: %v", err)
	}
	coretest.WantState(t, l.Once, core.StateNone, 0)
}

func loseResolve(t *testing.T, l *onceLoser) {
	if err := coretest.MustBegin(t, l.Once).Hold(context.Background(), "reason"); err != nil {
		t.Fatal(err)
	}
	seen := coretest.MustPeek(t, l.Once)
	l.lose()
	if err := l.Resolve(context.Background(), seen, []byte("value")); err != nil {
		t.Errorf("Resolve: %v", err)
	}
	if r := coretest.WantState(t, l.Once, core.StateCompleted, 1); string(r.Value) != "value" {
		t.Errorf("%+v", r)
	}
}

// TestForgetTwice: another attempt begins between the two runs of a Forget, and stays.
func TestForgetTwice(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	coretest.LoadOnce(t, server.Client())
	other := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long)).Once("name")
	once := coretest.NewClient(t, relay.Client()).Once("name")
	coretest.MustBegin(t, other)
	seen := coretest.MustPeek(t, other)
	relay.LoseReplies(coretest.RecordOf("name"), 1, testkit.Closed)
	coretest.BeforeRepetition(relay, coretest.RecordOf("name"), func() { coretest.MustBegin(t, other) })
	if err := once.ForgetRunning(context.Background(), seen); err != nil || relay.LostReplies() != 1 {
		t.Errorf("ForgetRunning: %v", err)
	}
	coretest.WantState(t, other, core.StateRunning, 1)
}

// TestCompleteTwice: the record is forgotten and made anew between the two runs of a Complete, which has been heard.
func TestCompleteTwice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	relay := server.Relay()
	coretest.LoadOnce(t, server.Client())
	other := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long)).Once("name")
	once := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long)).Once("name")
	a := coretest.MustBegin(t, once)
	relay.LoseReplies(coretest.RecordOf("name"), 1, testkit.Closed)
	coretest.BeforeRepetition(relay, coretest.RecordOf("name"), func() { coretest.Forget(t, other); coretest.MustBegin(t, other) })
	if err := a.Complete(ctx, nil); err != nil || relay.LostReplies() != 1 {
		t.Errorf("Complete: %v", err)
	}
	coretest.WantState(t, other, core.StateRunning, 1)
}

// TestBeginGivenUp: the context ends while the request is on its way, in either direction; nothing is left, not even
// the number of an attempt, whatever the policy.
func TestBeginGivenUp(t *testing.T) {
	t.Parallel()
	for policy := range core.HoldFailures + 1 {
		for name, way := range map[string]testkit.Direction{"request": testkit.ToServer, "reply": testkit.ToClient} {
			t.Run(name+[]string{" retry", " hold"}[policy], func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(context.Background())
				server := testkit.Start(t)
				rdb, relay := server.Client(), server.Relay()
				locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
				once := locks.Once("name", core.WithFailurePolicy(policy))
				coretest.LoadOnce(t, rdb)
				coretest.Nth(relay, coretest.RecordOf("name"), 1, func() { relay.Hold(way); cancel() })
				_, err := once.Begin(ctx)
				coretest.WantErr(t, err, context.Canceled)
				if errors.Is(err, core.ErrInProgress) {
					t.Error(err)
				}
				relay.Deliver()
				testkit.Eventually(t, coretest.Within, "the attempt to be taken back", func() bool {
					keys := rdb.Keys(context.Background(), "holdfast:released:{lock:name}*").Val()
					return len(keys) == 1 && contents(t, rdb, "name")["state"] == ""
				})
				wantExpiries(t, rdb)
				if a := coretest.MustBegin(t, once); a.Number() != 1 {
					t.Errorf("attempt %d", a.Number())
				}
			})
		}
	}
}

// TestBeginAfterItsRelease: the request arrives after its caller has given up, and after the release.
func TestBeginAfterItsRelease(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
	coretest.LoadOnce(t, rdb)
	coretest.MustPeek(t, locks.Once("warm")) // connects
	pass, passed := make(chan struct{}), make(chan struct{})
	coretest.Nth(relay, coretest.RecordOf("name"), 1, func() { cancel(); <-pass; close(passed) })
	_, err := holding(locks, "name").Begin(ctx)
	coretest.WantErr(t, err, context.Canceled)
	testkit.Eventually(t, coretest.Within, "the release", func() bool {
		keys := rdb.Keys(context.Background(), "holdfast:released:{lock:name}*").Val()
		return len(keys) == 1 && rdb.PTTL(context.Background(), keys[0]).Val() > 5*time.Minute
	})
	calls := server.CommandStats()["evalsha"].Calls
	close(pass)
	coretest.WaitFor(t, passed, "the request to go on")
	testkit.Eventually(t, coretest.Within, "the request to be executed", func() bool {
		return server.CommandStats()["evalsha"].Calls > calls
	})
	if fields := contents(t, rdb, "name"); len(fields) != 0 {
		t.Errorf("claimed for a caller that had given up: %v", fields)
	}
}
