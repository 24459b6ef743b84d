package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// wantForced forces a lock from the holders that were seen.
func wantForced(t testing.TB, locks *core.Client, seen core.Info, want bool) {
	t.Helper()
	if forced, err := locks.ForceUnlockSeen(context.Background(), seen); err != nil || forced != want {
		t.Errorf("ForceUnlockSeen = %v, %v, want %v", forced, err, want)
	}
}

// wantSpared has a lock not forced from holders that were not seen, which keep it.
func wantSpared(t testing.TB, locks *core.Client, seen core.Info, holders ...*core.Lease) {
	t.Helper()
	ctx := context.Background()
	forced, err := locks.ForceUnlockSeen(ctx, seen)
	if coretest.WantErr(t, err, core.ErrChanged); forced {
		t.Error("forced")
	}
	for _, l := range holders {
		if err := l.Extend(ctx, coretest.Long); err != nil {
			t.Errorf("Extend: %v", err)
		}
	}
}

// TestForceUnlockSeen: a lock of each strategy is taken from the holders that were seen, and not from a later one, in both
// states that it can have in Redis.
func TestForceUnlockSeen(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, kind := range []string{"Mutex", "Fair", "Write", "Read", "Semaphore"} {
		for _, expanded := range []bool{false, true} {
			name := kind
			if expanded {
				name += ", expanded"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
				admin := locks
				strategy := coretest.Strategies(locks)[kind]
				if kind == "Semaphore" {
					strategy = locks.Limit(2)
				}
				acquire := func() *core.Lease {
					t.Helper()
					lease := coretest.MustLock(t, strategy("name"))
					if expanded {
						coretest.MustLockWith(t, lease.Context(), strategy("name"))
					}
					return lease
				}
				free := coretest.MustInspect(t, admin, "name")
				wantForced(t, admin, free, false)
				first := acquire()
				wantSpared(t, admin, free, first)
				seen := coretest.MustInspect(t, admin, "name")
				if _, err := admin.ForceUnlock(ctx, "name"); err != nil {
					t.Fatal(err)
				}
				wantForced(t, admin, seen, false)
				second := acquire()
				wantSpared(t, admin, seen, second)
				seen = coretest.MustInspect(t, admin, "name")
				wrong := seen
				wrong.Holders = []core.Holder{{Owner: second.Owner(), Token: first.Token()}}
				wantSpared(t, admin, wrong, second)
				wrong.Holders = []core.Holder{{Owner: first.Owner(), Token: second.Token()}}
				wantSpared(t, admin, wrong, second)
				if kind == "Read" || kind == "Semaphore" {
					third := acquire()
					wantSpared(t, admin, seen, second, third)
					seen = coretest.MustInspect(t, admin, "name")
					if _, err := admin.ForceUnlockHolder(ctx, "name", core.Holder{Token: second.Token()}); err != nil {
						t.Fatal(err)
					}
					second = third // one that has left does no harm
				}
				wantForced(t, admin, seen, true)
				coretest.WantErr(t, second.Unlock(ctx), core.ErrNotHeld)
				if info := coretest.MustInspect(t, admin, "name"); info.Mode != "" {
					t.Errorf("%+v", info)
				}
			})
		}
	}
}

// TestForceUnlockSeenExpired: a hold that has expired is nobody's, so a lock is forced whose holder was not seen.
func TestForceUnlockSeenExpired(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	lease := coretest.MustLock(t, locks.Fair("name"))
	coretest.MustLockWith(t, lease.Context(), locks.Fair("name"))
	rdb.HSet(t.Context(), "lock:name", "exclusive_until", time.Now().Add(-time.Second).UnixMilli())
	wantForced(t, locks, core.Info{Name: "name"}, true) // no waiter has a heartbeat before that, which would end the holder
	coretest.Unlock(t, coretest.MustLock(t, locks.Fair("name")))
}

// TestForceUnlockSeenRedisson: holders of Redisson have no token, and are told apart by their owner.
func TestForceUnlockSeenRedisson(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	const one, two = "0a1b2c3d-0000-4000-8000-000000000001:1", "0a1b2c3d-0000-4000-8000-000000000002:1"
	for kind, mode := range map[string]string{"lock": "", "read": "read", "write": "write"} {
		set := func(owner string) {
			rdb.Del(ctx, "lock:"+kind)
			if mode != "" {
				rdb.HSet(ctx, "lock:"+kind, "mode", mode)
			}
			rdb.HSet(ctx, "lock:"+kind, owner, 1)
			rdb.PExpire(ctx, "lock:"+kind, coretest.Long)
		}
		set(one)
		seen := coretest.MustInspect(t, locks, kind)
		set(two)
		wantSpared(t, locks, seen)
		wantForced(t, locks, coretest.MustInspect(t, locks, kind), true)
	}
}

// TestForceUnlockSeenTwice: a repetition spares a later holder, and reports what the first run did.
func TestForceUnlockSeenTwice(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testkit.Start(t)
	relay := server.Relay()
	admin, locks := coretest.NewClient(t, relay.Client()), coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
	wantForced(t, admin, core.Info{Name: "warm"}, false) // so that Redis has the script
	coretest.MustLock(t, locks.Fair("name"))
	seen := coretest.MustInspect(t, locks, "name")
	var next *core.Lease
	relay.LoseReplies("forced:{lock:name}", 1, testkit.Closed)
	coretest.BeforeRepetition(relay, "forced:{lock:name}", func() { next, _ = locks.Fair("name").TryLock(ctx) })
	wantForced(t, admin, seen, true)
	if next == nil {
		t.Fatal("the lock was not free between the two runs")
	}
	coretest.Unlock(t, next)
}

// TestForceUnlockSeenRefuses bad input, and more holders than it compares.
func TestForceUnlockSeenRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	coretest.MustHold(t, locks.Read("name"), 1001)
	seen := coretest.MustInspect(t, locks, "name")
	_, err := locks.ForceUnlockSeen(ctx, seen)
	coretest.WantErr(t, err, core.ErrInvalidOption)
	seen.Shares = 0
	_, err = locks.ForceUnlockSeen(ctx, seen)
	coretest.WantErr(t, err, core.ErrChanged)
	coretest.MustHold(t, locks.Read("one", core.WithOwner("owner")), 1001)
	_, err = locks.ForceUnlockSeen(ctx, core.Info{Name: "one", Holders: coretest.MustInspect(t, locks, "one").Holders})
	coretest.WantErr(t, err, core.ErrChanged)
	_, err = locks.ForceUnlockSeen(ctx, core.Info{})
	coretest.WantErr(t, err, core.ErrInvalidName)
	if err := locks.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = locks.ForceUnlockSeen(ctx, core.Info{Name: "name"})
	coretest.WantErr(t, err, core.ErrClosed)
}
