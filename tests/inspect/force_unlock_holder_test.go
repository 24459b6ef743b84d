package inspect_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestForceUnlockHolder: one owner loses all its holds, by its name, its token or both. The others keep theirs, and waiters
// are granted what became free.
func TestForceUnlockHolder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, kind := range []string{"Mutex", "Fair", "Write", "Read", "Semaphore"} {
		for _, by := range []string{"owner", "token", "both"} {
			t.Run(kind+" by "+by, func(t *testing.T) {
				t.Parallel()
				rdb := testkit.Start(t).Client()
				locks, admin := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb)
				strategy := coretest.Strategies(locks)[kind]
				if kind == "Semaphore" {
					strategy = locks.Limit(2)
				}
				lease := coretest.MustLock(t, strategy("name"))
				again := coretest.MustLockWith(t, lease.Context(), strategy("name"))
				var beside *core.Lease
				if kind == "Read" || kind == "Semaphore" {
					beside = coretest.MustLock(t, strategy("name"))
				}
				holder := core.Holder{Owner: lease.Owner(), Token: lease.Token()}
				for _, wrong := range []core.Holder{{Owner: "nobody"}, {Token: lease.Token() - 1}, {Owner: "nobody", Token: lease.Token()}} {
					if forced, err := admin.ForceUnlockHolder(ctx, "name", wrong); forced || err != nil {
						t.Errorf("ForceUnlockHolder(%+v) = %v, %v", wrong, forced, err)
					}
				}
				if by == "owner" {
					holder.Token = 0
				} else if by == "token" {
					holder.Owner = ""
				}
				next := strategy
				if kind == "Read" {
					next = locks.Read
				}
				waiting := coretest.LeaseLater(t, next("name"))
				if kind != "Read" && kind != "Mutex" {
					coretest.AwaitQueue(t, locks, "name", 1)
				}
				if forced, err := admin.ForceUnlockHolder(ctx, "name", holder); !forced || err != nil {
					t.Fatalf("ForceUnlockHolder = %v, %v", forced, err)
				}
				granted := coretest.AwaitLease(t, waiting)
				if kind != "Read" && granted.Token() <= lease.Token() {
					t.Errorf("token %d after %d", granted.Token(), lease.Token())
				}
				for _, l := range []*core.Lease{lease, again} {
					coretest.WantErr(t, l.Unlock(ctx), core.ErrNotHeld)
				}
				if beside != nil {
					coretest.Unlock(t, beside)
				}
				coretest.Unlock(t, granted)
				if info, err := admin.Inspect(ctx, "name"); err != nil || info.Mode != "" {
					t.Errorf("Inspect = %+v, %v", info, err)
				}
			})
		}
	}
}

// TestForceUnlockHolderOfMany: an owner is found among more shares than one script looks at.
func TestForceUnlockHolderOfMany(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	leases := coretest.MustHold(t, locks.Read("name"), 1100) // one script looks at 1,000
	for _, i := range []int{0, 500, 1099} {
		if forced, err := locks.ForceUnlockHolder(ctx, "name", core.Holder{Token: leases[i].Token()}); !forced || err != nil {
			t.Errorf("reader %d: ForceUnlockHolder = %v, %v", i, forced, err)
		}
	}
	if info, err := locks.Inspect(ctx, "name"); err != nil || info.Shares != 1097 {
		t.Errorf("%d shares, %v", info.Shares, err)
	}
}

// TestForceUnlockHolderTwice: a repetition spares a later hold, even one of the same owner, and says what the first run did.
func TestForceUnlockHolderTwice(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testkit.Start(t)
	relay := server.Relay()
	admin, locks := coretest.NewClient(t, relay.Client()), coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
	if _, err := admin.ForceUnlockHolder(ctx, "warm", core.Holder{Owner: "owner"}); err != nil { // so that Redis has the script
		t.Fatal(err)
	}
	two := locks.Semaphore("name", 2, core.WithOwner("owner"))
	coretest.MustLock(t, two)
	var next *core.Lease
	relay.LoseReplies("forced:{lock:name}", 1, testkit.Closed)
	coretest.BeforeRepetition(relay, "forced:{lock:name}", func() { next, _ = two.TryLock(ctx) })
	if forced, err := admin.ForceUnlockHolder(ctx, "name", core.Holder{Owner: "owner"}); !forced || err != nil {
		t.Errorf("ForceUnlockHolder = %v, %v", forced, err)
	}
	if next == nil {
		t.Fatal("the owner did not get a permit between the two runs")
	}
	coretest.Unlock(t, next)
}

// TestForceUnlockHolderRefuses bad input.
func TestForceUnlockHolderRefuses(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	_, err := locks.ForceUnlockHolder(t.Context(), "name", core.Holder{})
	coretest.WantErr(t, err, core.ErrInvalidOption)
	_, err = locks.ForceUnlockHolder(t.Context(), "name", core.Holder{Owner: "mode"})
	coretest.WantErr(t, err, core.ErrInvalidOption)
	_, err = locks.ForceUnlockHolder(t.Context(), "", core.Holder{Owner: "a"})
	coretest.WantErr(t, err, core.ErrInvalidName)
	if err := locks.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = locks.ForceUnlockHolder(t.Context(), "name", core.Holder{Owner: "a"})
	coretest.WantErr(t, err, core.ErrClosed)
}
