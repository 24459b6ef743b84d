package once_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestDeclarationArrivesLate: the first copy of a declaration is held back, until its second copy and a later declaration have been
// confirmed. The later one stays, and a crash counts as it says.
func TestDeclarationArrivesLate(t *testing.T) {
	t.Parallel()
	for _, states := range [][2]core.State{
		{core.StateNone, core.StateCompleted}, {core.StateUnknown, core.StateCompleted}, {core.StateNone, core.StateUnknown},
	} {
		t.Run(fmt.Sprintf("%q then %q", states[0], states[1]), func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			server := testkit.Start(t)
			rdb, relay := server.Client(), server.Relay()
			coretest.LoadOnce(t, rdb)
			locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
			other := coretest.NewClient(t, rdb).Once("name")
			coretest.MustPeek(t, locks.Once("warm")) // connects
			a := coretest.MustBegin(t, locks.Once("name"))
			pass, passed := make(chan struct{}), make(chan struct{})
			coretest.Nth(relay, coretest.RecordOf("name"), 1, func() { <-pass; close(passed) })
			for _, state := range states {
				if err := a.Declare(ctx, state); err != nil {
					t.Errorf("declare %q: %v", state, err)
				}
			}
			calls := server.CommandStats()["evalsha"].Calls
			close(pass)
			coretest.WaitFor(t, passed, "the first copy to go on")
			testkit.Eventually(t, coretest.Within, "the first copy to be executed", func() bool {
				return server.CommandStats()["evalsha"].Calls > calls
			})
			coretest.Abandon(t, rdb, "name")
			coretest.WantState(t, other, states[1], 1)
			wantFollower(t, other, states[1])
		})
	}
}

// TestDeclarationNumbers: the greater number wins, whatever arrives last. A record without a number comes from an older
// version. Each attempt begins its numbers anew.
func TestDeclarationNumbers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newOnceScripts(t, testkit.Start(t).Client(), "name")
	want := func(id, what string, number int, reply, outcome, last string) {
		t.Helper()
		got := s.run(coretest.DeclareParts, id, id, what, number)
		state := s.state()
		if got != reply || state["outcome_on_expiry"] != outcome || state["declaration"] != last {
			t.Errorf("%q as number %d of %s: %s, and the record is %v", what, number, id, got, state)
		}
	}
	s.begin("a")
	want("a", "unknown", 2, "1", "unknown", "2")
	want("a", "completed", 1, "1", "unknown", "2")
	want("a", "unknown", 2, "1", "unknown", "2")
	want("a", "completed", 10, "1", "completed", "10")
	want("a", "unknown", 9, "1", "completed", "10")
	s.rdb.HDel(ctx, coretest.RecordOf("name"), "declaration")
	want("a", "retry", 1, "1", "retry", "1")
	want("a", "retry", 7, "1", "retry", "7")
	s.begin("a") // again
	want("a", "unknown", 6, "1", "retry", "7")
	coretest.Abandon(t, s.rdb, "name")
	s.begin("b")
	want("a", "unknown", 8, "0", "retry", "0")
	want("b", "completed", 1, "1", "completed", "1")
}

// TestOvertakenDeclarationWrites: so a client that waits for replicas on that connection waits for the later declaration.
func TestOvertakenDeclarationWrites(t *testing.T) {
	t.Parallel()
	s := newOnceScripts(t, testkit.Start(t).Client(), "name")
	s.begin("a")
	s.run(coretest.DeclareParts, "a", "a", "completed", 2)
	before, state := writes(t, s.rdb), s.state()
	s.run(coretest.DeclareParts, "a", "a", "retry", 1)
	if after := writes(t, s.rdb); after == before || !maps.Equal(state, s.state()) {
		t.Errorf("%d writes, and %v has become %v", after-before, state, s.state())
	}
}

// writes returns how much the server has written since it was started.
func writes(t *testing.T, rdb *redis.Client) int64 {
	t.Helper()
	info := rdb.InfoMap(context.Background(), "persistence").Val()
	n, err := strconv.ParseInt(info["Persistence"]["rdb_changes_since_last_save"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDeclarationEndsWithItsAttempt: no end of an attempt leaves the number of a declaration.
func TestDeclarationEndsWithItsAttempt(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for name, end := range map[string]func(*onceScripts){
		"completed":          func(s *onceScripts) { s.complete("b") },
		"completed, unheard": func(s *onceScripts) { s.remembered = true; s.complete("b") },
		"held":               func(s *onceScripts) { s.hold("b") },
		"released":           func(s *onceScripts) { s.release("b") },
		"given up":           func(s *onceScripts) { s.giveUp("b") },
		"resolved":           func(s *onceScripts) { coretest.Abandon(t, rdb, s.name); s.resolve("r") },
		"overtaken end":      func(s *onceScripts) { coretest.Abandon(t, rdb, s.name); s.complete("a") },
	} {
		s := newOnceScripts(t, rdb, name)
		s.begin("a")
		coretest.Abandon(t, rdb, name)
		s.begin("b")
		s.run(coretest.DeclareParts, "b", "b", "retry", 1)
		end(s)
		for _, field := range []string{"declaration", "outcome_on_expiry"} {
			if value, ok := s.state()[field]; ok || s.state()["state"] == "running" {
				t.Errorf("%s: %s %q is left in %v", name, field, value, s.state())
			}
		}
	}
}

// TestDeclarationOfAnOlderVersion: an older version has left the number of a declaration in a record whose attempt has ended. The
// first declaration of the next attempt counts all the same.
func TestDeclarationOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for _, state := range []core.State{core.StateCompleted, core.StateUnknown} {
		once := locks.Once(string(state))
		if err := coretest.MustBegin(t, once).Release(ctx); err != nil {
			t.Error(err)
		}
		rdb.HSet(ctx, coretest.RecordOf(once.Key()), "declaration", 5)
		if err := coretest.MustBegin(t, once).Declare(ctx, state); err != nil {
			t.Errorf("declare %q: %v", state, err)
		}
		coretest.Abandon(t, rdb, once.Key())
		coretest.WantState(t, once, state, 2)
		wantFollower(t, once, state)
	}
}
