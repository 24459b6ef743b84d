package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestSemaphoreInspect: Inspect tells of holders and waiters which permits they have and with which n.
func TestSemaphoreInspect(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	want := []core.Holder{{Owner: "a", Holds: 1, Permits: 1, Limit: 4}, {Owner: "b", Holds: 2, Permits: 2, Limit: 5, Slot: 1}}
	four := locks.Semaphore("name", 4, core.WithOwner("a"))
	a := coretest.MustLock(t, four)
	compact, err := locks.Inspect(t.Context(), "name")
	if err != nil || compact.Mode != core.ModeSemaphore || compact.Shares != 1 || len(compact.Holders) != 1 {
		t.Fatalf("Inspect = %+v, %v", compact, err)
	}
	five := locks.Semaphore("name", 5, core.WithOwner("b"), core.WithPermits(2))
	b := coretest.MustLock(t, five)
	coretest.MustLockWith(t, b.Context(), five)
	waiting := coretest.LeaseLater(t, locks.Semaphore("name", 6, core.WithPermits(4)))
	coretest.AwaitQueue(t, locks, "name", 1)
	info, err := locks.Inspect(t.Context(), "name")
	if err != nil || info.Mode != core.ModeSemaphore || info.Shares != 3 || info.Places != 1 {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	for i, h := range append(compact.Holders, info.Holders...) {
		if h.TTL <= 0 || h.Granted.IsZero() || h.Token != []int64{a.Token(), a.Token(), b.Token()}[i] {
			t.Errorf("holder %+v", h)
		}
		h.TTL, h.Granted, h.Token = 0, time.Time{}, 0
		if h != want[[]int{0, 0, 1}[i]] {
			t.Errorf("holder %+v, want %+v", h, want[[]int{0, 0, 1}[i]])
		}
	}
	if w := info.Queue[0]; w.Mode != core.ModeSemaphore || w.Permits != 4 || w.Limit != 6 {
		t.Errorf("waiter %+v", w)
	}
	coretest.Unlock(t, a)
	coretest.AwaitLease(t, waiting)
}

// TestSemaphoreLeavesNothing: after the last release the name has no key, whatever there was.
func TestSemaphoreLeavesNothing(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	leases := coretest.MustHold(t, locks.Semaphore("name", 5), 3)
	leases = append(leases, coretest.MustLock(t, locks.Semaphore("name", 5), core.WithPermits(2)))
	waiting := coretest.LeaseLater(t, locks.Semaphore("name", 5))
	coretest.AwaitQueue(t, locks, "name", 1)
	for _, lease := range leases {
		coretest.Unlock(t, lease)
	}
	coretest.Unlock(t, coretest.AwaitLease(t, waiting))
	for _, key := range rdb.Keys(context.Background(), "*lock:name*").Val() {
		if !strings.HasPrefix(key, "holdfast:released") { // of the waiter, whose lease was short yet
			t.Errorf("left: %s", key)
		}
	}
}

// TestSemaphoreManyHolders: the slots of hundreds are those from 0 on without a gap, and one that is given back is the next.
func TestSemaphoreManyHolders(t *testing.T) {
	t.Parallel()
	const n, many = 600, 200
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	all := locks.Semaphore("name", n)
	large := coretest.MustLock(t, all, core.WithPermits(many))
	leases := coretest.MustHold(t, all, n-many)
	for i, lease := range leases {
		if lease.Slot() != many+i {
			t.Fatalf("lease %d has slot %d", i, lease.Slot())
		}
	}
	coretest.WantErr(t, coretest.TryLock(all), core.ErrNotAcquired)
	for _, i := range []int{300, 3, 150} {
		coretest.Unlock(t, leases[i])
		if lease := coretest.MustLock(t, all); lease.Slot() != many+i {
			t.Errorf("slot %d, want %d", lease.Slot(), many+i)
		}
	}
	coretest.Unlock(t, large)
	if lease := coretest.MustLock(t, all, core.WithPermits(many)); lease.Slot() != 0 {
		t.Errorf("slot %d, want 0", lease.Slot())
	}
}

// TestSemaphoreOwnerOfExpiredPermits: an owner whose permits have expired, but not been removed yet, gets new ones in their
// place. One script removes a hundred expired holds at most.
func TestSemaphoreOwnerOfExpiredPermits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	many := locks.Semaphore("name", 1000)
	coretest.MustLock(t, many)
	crashed := coretest.MustHold(t, many, 120)
	named := locks.Semaphore("name", 1000, core.WithOwner("named"))
	coretest.MustLock(t, named, core.WithPermits(3))
	const expiries, slots = "holdfast:share_expiries:{lock:name}", "holdfast:slots:{lock:name}"
	past := rdb.Time(ctx).Val().UnixMilli()
	for _, lease := range crashed {
		rdb.ZAdd(ctx, expiries, redis.Z{Score: float64(past - 2), Member: lease.Owner()})
	}
	for _, id := range rdb.ZRange(ctx, expiries, -2, -1).Val() { // the first holder's and the named owner's
		if rdb.HGet(ctx, "lock:name", "share:"+id).Val() == "0 named" {
			rdb.ZAdd(ctx, expiries, redis.Z{Score: float64(past - 1), Member: id})
		}
	}
	coretest.MustLock(t, named)
	if n := rdb.ZCount(ctx, slots, "0", "+inf").Val(); n < 2 || n > 25 {
		t.Fatalf("%d permits are left, so the script has removed none, or all", n)
	}
	for _, permit := range []string{"2:named", "3:named"} {
		if rdb.ZScore(ctx, slots, permit).Err() == nil {
			t.Errorf("permit %s of the expired hold is left", permit)
		}
	}
}
