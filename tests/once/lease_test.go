package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestDeclare: what an attempt counts as once its lease is over is what it said last.
func TestDeclare(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for declared, want := range map[core.State]core.State{
		core.StateCompleted: core.StateCompleted,
		core.StateUnknown:   core.StateUnknown,
		core.StateNone:      core.StateAbandoned,
	} {
		for _, late := range []bool{false, true} {
			for policy := range core.HoldFailures + 1 {
				name := string(want) + map[bool]string{true: " late"}[late] + []string{" retry", " hold"}[policy]
				once := locks.Once(name, core.WithFailurePolicy(policy))
				a := coretest.MustBegin(t, once)
				if late {
					coretest.Abandon(t, rdb, name)
				}
				if err := a.Declare(ctx, declared); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if !late {
					coretest.WantState(t, once, core.StateRunning, 1)
					_, err := once.Begin(ctx)
					coretest.WantErr(t, err, core.ErrInProgress)
					coretest.Abandon(t, rdb, name)
				}
				if r := coretest.WantState(t, once, want, 1); !r.Ended.IsZero() || r.Omitted != (want == core.StateCompleted) {
					t.Errorf("%s: %+v", name, r)
				}
				wantFollower(t, locks.Once(name), want)
				if want == core.StateAbandoned {
					coretest.WantErr(t, a.Complete(ctx, nil), core.ErrStale)
					continue
				}
				if err := a.Complete(ctx, []byte("value")); err != nil {
					t.Errorf("%s: the late Complete: %v", name, err)
				}
				if got, err := once.Do(ctx, coretest.Answers(nil, "")); string(got.Value) != "value" || got.Omitted || err != nil {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
			}
		}
	}
}

// TestDeclareRefused: there is no attempt any more, or no such state.
func TestDeclareRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	a := coretest.MustBegin(t, locks.Once("name"))
	for _, state := range []core.State{core.StateRunning, core.StateAbandoned, "nonsense"} {
		if err := a.Declare(ctx, state); err == nil {
			t.Errorf("declared %q", state)
		}
	}
	coretest.Forget(t, locks.Once("name"))
	coretest.WantErr(t, a.Declare(ctx, core.StateCompleted), core.ErrStale)
	coretest.WantState(t, locks.Once("name"), core.StateNone, 0)
	dead, cancel := context.WithCancel(ctx)
	cancel()
	b := coretest.MustBegin(t, locks.Once("cancelled"))
	if err := b.Declare(dead, core.StateUnknown); err != nil {
		t.Errorf("with a cancelled context: %v", err)
	}
}

// TestDeclareWhileItEnds: the attempt is completed while Declare is on its way; no attempt has followed.
func TestDeclareWhileItEnds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	relay := testkit.Start(t).Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
	coretest.LoadOnce(t, relay.Client())
	a := coretest.MustBegin(t, locks.Once("name"))
	coretest.Nth(relay, coretest.RecordOf("name"), 1, func() {
		if err := a.Complete(ctx, nil); err != nil {
			t.Errorf("Complete: %v", err)
		}
	})
	err := a.Declare(ctx, core.StateUnknown)
	if coretest.WantErr(t, err, core.ErrNotHeld); errors.Is(err, core.ErrStale) {
		t.Error("nobody has followed")
	}
}

// TestRetentionEnds: then it is as if nothing had been, and before it a crash can be seen.
func TestRetentionEnds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	short := locks.Once("short", core.WithRetention(10*time.Millisecond))
	a := coretest.MustBegin(t, short)
	if left := rdb.PTTL(ctx, coretest.RecordOf("short")).Val(); left < coretest.Long-coretest.Within {
		t.Errorf("a running attempt is kept for %v, its lease is %v", left, coretest.Long)
	}
	if err := a.Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, coretest.Within, "the retention to end", func() bool {
		return coretest.MustPeek(t, short).State == core.StateNone
	})
	if b := coretest.MustBegin(t, short); b.Number() != 1 || b.Token() <= a.Token() {
		t.Errorf("attempt %d, token %d after %d", b.Number(), b.Token(), a.Token())
	}
	crashed := coretest.NewClient(t, rdb).Once("crashed", core.WithFixedTTL(500*time.Millisecond), core.WithRetention(time.Hour))
	coretest.MustBegin(t, crashed)
	testkit.Eventually(t, coretest.Within, "the lease to end", func() bool {
		return coretest.MustPeek(t, crashed).State == core.StateAbandoned
	})
	if r := coretest.MustPeek(t, crashed); r.Retention < time.Hour-coretest.Within || r.Lease != 0 || !r.Ended.IsZero() || r.Token == 0 {
		t.Errorf("%+v", r)
	}
}

// TestOnceIsRenewed: a run outlives its TTL several times, and the record is kept for its retention from the last
// renewal on.
func TestOnceIsRenewed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	renewed := make(chan core.Renewed, 100)
	locks := coretest.NewClient(t, rdb, core.WithTTL(6*time.Second), core.WithHooks(core.Hooks{
		Renewed: func(_ context.Context, r core.Renewed) { renewed <- r },
	}))
	got, err := locks.Once("name").Do(ctx, func(ctx context.Context) ([]byte, error) {
		for range 2 {
			rdb.PExpire(ctx, coretest.RecordOf("name"), coretest.Within)
			select {
			case r := <-renewed:
				if r.Err != nil || r.Name != "name" {
					t.Errorf("%+v", r)
				}
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			// Not at once: the notification may be of a renewal before the expiry was shortened.
			testkit.Eventually(t, coretest.Within, "a renewal that keeps the record", func() bool {
				return rdb.PTTL(ctx, coretest.RecordOf("name")).Val() > 23*time.Hour
			})
		}
		return nil, ctx.Err()
	})
	if err != nil || got.Attempt != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestOnceMaxHold: the run is told to stop, and another one may follow when its lease is over.
func TestOnceMaxHold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	for name, opts := range map[string][]core.OnceOption{
		"max hold":  {core.WithMaxHold(50 * time.Millisecond), core.WithTTL(time.Second)},
		"fixed TTL": {core.WithFixedTTL(500 * time.Millisecond)},
	} {
		lost := make(chan struct{})
		got, err := locks.Once(name, opts...).Do(ctx, func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			if coretest.WantErr(t, context.Cause(ctx), core.ErrLeaseLost); name == "max hold" {
				_, err := coretest.NewClient(t, rdb).Once(name, core.WithWait(coretest.Within)).Do(context.Background(),
					coretest.Answers(new(atomic.Int64), "of another"))
				close(lost)
				return nil, err
			}
			close(lost)
			return []byte("late"), nil
		})
		<-lost
		if name == "fixed TTL" && (err != nil || string(got.Value) != "late") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if name == "max hold" && !errors.Is(err, core.ErrStale) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestCompleteBesideTheLoss completes attempts at the moment at which their leases expire. The end is sent twice, which the
// hold of the attempt notes, while the client takes the hold of the lost lease out. The race detector is the judge.
func TestCompleteBesideTheLoss(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithFixedTTL(500*time.Millisecond), core.WithLogger(nil))
	for i := range 3 {
		attempt := coretest.MustBegin(t, locks.Once(fmt.Sprint("name", i)))
		relay.LoseReplies(coretest.RecordOf(fmt.Sprint("name", i)), 1, testkit.Closed)
		coretest.WaitFor(t, attempt.Context().Done(), "the lease to expire")
		if err := attempt.Complete(context.Background(), nil); err != nil {
			t.Error(err)
		}
	}
	if n := relay.LostReplies(); n != 3 {
		t.Errorf("%d replies were lost, want 3", n)
	}
}

// TestOnceLoses: a run that was forgotten, or followed, hears of it at its next renewal.
func TestOnceLoses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	lost := make(chan core.Lost, 100)
	locks := coretest.NewClient(t, rdb, core.WithTTL(2*time.Second), core.WithHooks(core.Hooks{
		Lost: func(_ context.Context, l core.Lost) { lost <- l },
	}))
	failure := errors.New("stopped")
	other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for name, happen := range map[string]func(){
		"forgotten": func() { coretest.Forget(t, other.Once("forgotten")) },
		"followed": func() {
			testkit.Eventually(t, coretest.Within, "a follower", func() bool { // before the next renewal
				coretest.Abandon(t, rdb, "followed")
				_, err := other.Once("followed").Begin(ctx)
				return err == nil
			})
		},
	} {
		_, err := locks.Once(name).Do(ctx, func(ctx context.Context) ([]byte, error) {
			happen()
			<-ctx.Done()
			coretest.WantErr(t, context.Cause(ctx), core.ErrLeaseLost)
			return nil, failure
		})
		coretest.WantErr(t, err, failure)
		coretest.WantErr(t, err, core.ErrLeaseLost)
		if l := <-lost; l.Name != name || l.Token == 0 || !errors.Is(l.Cause, core.ErrLeaseLost) {
			t.Errorf("%+v", l)
		}
	}
	coretest.WantState(t, other.Once("forgotten"), core.StateNone, 0)
	coretest.WantState(t, other.Once("followed"), core.StateRunning, 2)
}

// TestOnceAfterAClockStep: the server's clock was set back, so that the lease seems to last for hours.
func TestOnceAfterAClockStep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	const ttl = 3 * time.Second // in which a busy machine asks four times
	once := locks.Once("name", core.WithFixedTTL(ttl))
	coretest.MustBegin(t, once)
	rdb.HSet(ctx, coretest.RecordOf("name"), "deadline", time.Now().Add(time.Hour).UnixMilli())
	if r := coretest.MustPeek(t, once); r.Lease > ttl || r.Lease <= 0 {
		t.Errorf("Peek: a lease of %v", r.Lease)
	}
	_, err := once.Begin(ctx)
	var busy *core.InProgressError
	if !errors.As(err, &busy) || busy.RetryAfter > ttl {
		t.Errorf("%v", err)
	}
	rdb.HSet(ctx, coretest.RecordOf("name"), "deadline", time.Now().Add(time.Hour).UnixMilli())
	if err := coretest.ResolveNow(ctx, once, nil); !errors.As(err, &busy) || busy.RetryAfter > ttl {
		t.Errorf("Resolve: %v", err)
	}
	if ms, _ := rdb.HGet(ctx, coretest.RecordOf("name"), "deadline").Int64(); time.Until(time.UnixMilli(ms)) > coretest.Within {
		t.Errorf("after Resolve the lease lasts until %v", time.UnixMilli(ms))
	}
	if got, err := locks.Once("name", core.WithWait(coretest.Within)).Do(ctx, coretest.Answers(new(atomic.Int64), "")); err != nil ||
		got.Attempt != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	// A renewal after the step does not make the lease longer than the TTL.
	renewed := make(chan struct{}, 100)
	other := coretest.NewClient(t, rdb, core.WithTTL(6*time.Second), core.WithHooks(core.Hooks{
		Renewed: func(context.Context, core.Renewed) { renewed <- struct{}{} },
	}))
	coretest.MustBegin(t, other.Once("renewed"))
	rdb.HSet(ctx, coretest.RecordOf("renewed"), "deadline", time.Now().Add(time.Hour).UnixMilli())
	coretest.WaitFor(t, renewed, "a renewal")
	if ms, _ := rdb.HGet(ctx, coretest.RecordOf("renewed"), "deadline").Int64(); time.Until(time.UnixMilli(ms)) > coretest.Within {
		t.Errorf("renewed until %v", time.UnixMilli(ms))
	}
}
