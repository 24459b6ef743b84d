package once_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestTakeover: a caller that comes after the lease has expired gets the next attempt and a greater token. The one before can say
// nothing any more, however it ends, and the record does not change.
func TestTakeover(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	for end, call := range map[string]func(*core.Attempt) error{
		"complete": func(a *core.Attempt) error { return a.Complete(ctx, []byte("late")) },
		"release":  func(a *core.Attempt) error { return a.Release(ctx) },
		"hold":     func(a *core.Attempt) error { return a.Hold(ctx, "late") },
	} {
		ends := make(chan core.AttemptEnd, 100)
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
			AttemptEnd: func(_ context.Context, end core.AttemptEnd) { ends <- end },
		}))
		once := locks.Once(end)
		zombie := coretest.MustBegin(t, once)
		coretest.Abandon(t, rdb, end)
		coretest.WantState(t, once, core.StateAbandoned, 1)
		next := coretest.MustBegin(t, coretest.NewClient(t, rdb).Once(end))
		if next.Number() != 2 || next.Token() <= zombie.Token() {
			t.Errorf("attempt %d, token %d after %d", next.Number(), next.Token(), zombie.Token())
		}
		before := contents(t, rdb, end)
		coretest.WantErr(t, zombie.Declare(ctx, core.StateCompleted), core.ErrStale)
		err := call(zombie)
		coretest.WantErr(t, err, core.ErrStale)
		coretest.WantErr(t, err, core.ErrLeaseLost)
		if e := <-ends; e.Err != err || e.Recreated || e.Attempt != 1 || e.Token != zombie.Token() {
			t.Errorf("%s: the hook saw %+v", end, e)
		}
		if after := contents(t, rdb, end); !maps.Equal(before, after) {
			t.Errorf("%s: a zombie has changed %v to %v", end, before, after)
		}
		if err := next.Complete(ctx, []byte("value")); err != nil {
			t.Error(err)
		}
		coretest.WantErr(t, call(mustZombie(t, rdb, locks, end+" again")), core.ErrStale)
		if got, err := once.Do(ctx, coretest.Answers(nil, "")); string(got.Value) != "value" || got.Attempt != 2 || err != nil {
			t.Errorf("%s: %+v, %v", end, got, err)
		}
	}
}

// mustZombie returns an attempt after which another one was completed.
func mustZombie(t testing.TB, rdb *redis.Client, locks *core.Client, name string) *core.Attempt {
	t.Helper()
	zombie := coretest.MustBegin(t, locks.Once(name))
	coretest.Abandon(t, rdb, name)
	if err := coretest.MustBegin(t, locks.Once(name)).Complete(context.Background(), []byte("value")); err != nil {
		t.Fatal(err)
	}
	return zombie
}

// recordEvent is what becomes of the record of a running attempt, and what the attempt's Complete does after it.
type recordEvent struct {
	happen          func(name string, other *core.Once) // other is the Once of that name in another process
	stale, recreate bool
}

func recordEvents(t *testing.T, rdb *redis.Client) map[string]recordEvent {
	ctx := context.Background()
	// followed lets the attempt's lease expire and another attempt begin.
	followed := func(end func(*core.Attempt) error) recordEvent {
		return recordEvent{stale: true, happen: func(name string, other *core.Once) {
			coretest.Abandon(t, rdb, name)
			_ = end(coretest.MustBegin(t, other))
		}}
	}
	// undone is what takes no effect, so the end of the attempt before it is written anew.
	undone := func(e recordEvent) recordEvent { e.stale, e.recreate = false, true; return e }
	// forgotten deletes the record, and another attempt begins.
	forgotten := func(end func(*core.Attempt) error) recordEvent {
		return recordEvent{stale: true, happen: func(_ string, other *core.Once) {
			coretest.Forget(t, other)
			_ = end(coretest.MustBegin(t, other))
		}}
	}
	run := func(*core.Attempt) error { return nil }
	release := func(a *core.Attempt) error { return a.Release(ctx) }
	complete := func(a *core.Attempt) error { return a.Complete(ctx, nil) }
	hold := func(a *core.Attempt) error { return a.Hold(ctx, "") }
	return map[string]recordEvent{
		"nothing":            {happen: func(string, *core.Once) {}},
		"lease expired":      {happen: func(name string, _ *core.Once) { coretest.Abandon(t, rdb, name) }},
		"evicted":            {happen: func(name string, _ *core.Once) { rdb.Del(ctx, coretest.RecordOf(name)) }, recreate: true},
		"forgotten":          {happen: func(_ string, other *core.Once) { coretest.Forget(t, other) }, recreate: true},
		"follower":           followed(run),
		"follower released":  undone(followed(release)),
		"follower withdrawn": undone(followed(func(a *core.Attempt) error { return seal.AttemptOf(a).Withdraw(ctx) })),
		"follower expired": {recreate: true, happen: func(name string, other *core.Once) {
			for range 2 {
				coretest.Abandon(t, rdb, name)
				coretest.MustBegin(t, other)
			}
			coretest.Abandon(t, rdb, name)
		}},
		"follower done":          followed(complete),
		"follower held":          followed(hold),
		"forgotten and released": undone(forgotten(release)),
		"forgotten and begun":    forgotten(run),
		"forgotten and done":     forgotten(complete),
		"forgotten and held":     forgotten(hold),
	}
}

// TestLateComplete: what has become of the record meanwhile, and what a Complete does then.
func TestLateComplete(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ends := make(chan core.AttemptEnd, 100)
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		AttemptEnd: func(_ context.Context, end core.AttemptEnd) { ends <- end },
	}))
	other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for name, meanwhile := range recordEvents(t, rdb) {
		once := locks.Once(name, core.WithFingerprint([]byte("print")), core.WithRetention(time.Hour))
		a := coretest.MustBegin(t, once)
		meanwhile.happen(name, other.Once(name))
		before := contents(t, rdb, name)
		err := a.Complete(context.Background(), []byte("value"))
		end := <-ends
		if end.Recreated != meanwhile.recreate || end.Err != err {
			t.Errorf("%s: the hook saw %+v", name, end)
		}
		if meanwhile.stale {
			if coretest.WantErr(t, err, core.ErrStale); !maps.Equal(before, contents(t, rdb, name)) {
				t.Errorf("%s: %v has become %v", name, before, contents(t, rdb, name))
			}
			continue
		}
		r := coretest.WantState(t, once, core.StateCompleted, 1)
		if err != nil || string(r.Value) != "value" || string(r.Fingerprint) != "print" || r.Token != a.Token() ||
			r.Ended.IsZero() || r.Retention > time.Hour || r.Retention < time.Hour-coretest.Within {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		_, err = locks.Once(name, core.WithFingerprint([]byte("other"))).Begin(context.Background())
		coretest.WantErr(t, err, core.ErrFingerprintMismatch)
	}
}

// TestLateHold: the same for Hold and Release of what was forgotten.
func TestLateHold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	a := coretest.MustBegin(t, locks.Once("held"))
	coretest.Forget(t, locks.Once("held"))
	if err := a.Hold(ctx, "who knows"); err != nil {
		t.Errorf("Hold: %v", err)
	}
	if r := coretest.WantState(t, locks.Once("held"), core.StateUnknown, 1); r.Reason != "who knows" || r.Ended.IsZero() {
		t.Errorf("%+v", r)
	}
	b := coretest.MustBegin(t, locks.Once("released"))
	coretest.Forget(t, locks.Once("released"))
	coretest.WantErr(t, b.Release(ctx), core.ErrStale)
	coretest.WantState(t, locks.Once("released"), core.StateNone, 0)
}

// TestAbandoned: whether another attempt may follow is up to both.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	kinds := map[string]func(string) *core.Once{
		"retry": func(name string) *core.Once { return locks.Once(name) },
		"hold":  func(name string) *core.Once { return holding(locks, name) },
	}
	for was, earlier := range kinds {
		for is, later := range kinds {
			name := was + "," + is
			coretest.MustBegin(t, earlier(name))
			coretest.Abandon(t, rdb, name)
			before := contents(t, rdb, name)
			a, err := later(name).Begin(ctx)
			if was == "retry" && is == "retry" {
				if err != nil || a.Number() != 2 {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			coretest.WantErr(t, err, core.ErrOutcomeUnknown)
			var unknown *core.OutcomeUnknownError
			if !errors.As(err, &unknown) || unknown.Record.Attempt != 1 || !maps.Equal(before, contents(t, rdb, name)) {
				t.Errorf("%s: %v", name, err)
			}
			coretest.Forget(t, later(name))
			if a := coretest.MustBegin(t, later(name)); a.Number() != 1 {
				t.Errorf("%s: attempt %d after Forget", name, a.Number())
			}
		}
	}
}

// TestFingerprintOfATakeover: the record has the fingerprint of the attempt that has taken over, also if that has none; without one
// nothing is compared.
func TestFingerprintOfATakeover(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	with := locks.Once("name", core.WithFingerprint([]byte("a")))
	coretest.MustBegin(t, with)
	coretest.Abandon(t, rdb, "name")
	_, err := locks.Once("name", core.WithFingerprint([]byte("b"))).Begin(context.Background())
	coretest.WantErr(t, err, core.ErrFingerprintMismatch)
	coretest.MustBegin(t, locks.Once("name"))
	if r := coretest.WantState(t, with, core.StateRunning, 2); r.Fingerprint != nil {
		t.Errorf("%+v", r)
	}
	coretest.Abandon(t, rdb, "name")
	a := coretest.MustBegin(t, with)
	if r := coretest.WantState(t, with, core.StateRunning, 3); string(r.Fingerprint) != "a" {
		t.Errorf("%+v", r)
	}
	if err := a.Release(context.Background()); err != nil {
		t.Error(err)
	}
	if fields := contents(t, rdb, "name"); fields["fingerprint"] != "" {
		t.Errorf("left after a release: %v", fields)
	}
}

// TestAttemptNumbers: they count on after a release, and begin anew when the record is gone.
func TestAttemptNumbers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	once := locks.Once("name")
	for want := 1; want <= 3; want++ {
		a := coretest.MustBegin(t, once)
		coretest.WantState(t, once, core.StateRunning, want)
		if err := a.Release(ctx); err != nil || a.Number() != want {
			t.Errorf("attempt %d, want %d, %v", a.Number(), want, err)
		}
		if r := coretest.WantState(t, once, core.StateNone, want); r.Token != 0 || !r.Began.IsZero() || r.Fingerprint != nil {
			t.Errorf("after a release: %+v", r)
		}
	}
	coretest.MustBegin(t, once)
	coretest.Abandon(t, rdb, "name")
	if a := coretest.MustBegin(t, once); a.Number() != 5 {
		t.Errorf("attempt %d after a crash, want 5", a.Number())
	}
	coretest.Forget(t, once)
	coretest.WantState(t, once, core.StateNone, 0)
	if a := coretest.MustBegin(t, once); a.Number() != 1 {
		t.Errorf("attempt %d after Forget", a.Number())
	}
}
