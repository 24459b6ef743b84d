package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestSemaphoreInspect: Inspect tells of holders and waiters which permits they have and with which n.
func TestSemaphoreInspect(t *testing.T) {
	t.Parallel()
	locks := newClient(t, redistest.Start(t).Client(), core.WithTTL(long))
	want := []core.Holder{{Owner: "a", Holds: 1, Permits: 1, Limit: 4}, {Owner: "b", Holds: 2, Permits: 2, Limit: 5, Slot: 1}}
	four := locks.Semaphore("name", 4, core.WithOwner("a"))
	a := mustLock(t, four)
	compact, err := locks.Inspect(t.Context(), "name")
	if err != nil || compact.Mode != core.ModeSemaphore || compact.Shares != 1 || len(compact.Holders) != 1 {
		t.Fatalf("Inspect = %+v, %v", compact, err)
	}
	five := locks.Semaphore("name", 5, core.WithOwner("b"), core.WithPermits(2))
	b := mustLock(t, five)
	mustLockWith(t, b.Context(), five)
	waiting := leaseLater(t, locks.Semaphore("name", 6, core.WithPermits(4)))
	awaitQueue(t, locks, "name", 1)
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
	unlock(t, a)
	awaitLease(t, waiting)
}

// TestSemaphoreLeavesNothing: after the last release the name has no key, whatever there was.
func TestSemaphoreLeavesNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	leases := mustHold(t, locks.Semaphore("name", 5), 3)
	leases = append(leases, mustLock(t, locks.Semaphore("name", 5), core.WithPermits(2)))
	waiting := leaseLater(t, locks.Semaphore("name", 5))
	awaitQueue(t, locks, "name", 1)
	for _, lease := range leases {
		unlock(t, lease)
	}
	unlock(t, awaitLease(t, waiting))
	for _, key := range rdb.Keys(context.Background(), "*lock:name*").Val() {
		if !strings.HasPrefix(key, "holdfast:released") { // of the waiter, whose lease was short yet
			t.Errorf("left: %s", key)
		}
	}
}

// TestSemaphoreManyHolders: the slots of thousands are those from 0 on without a gap, and one that is given back is the next.
func TestSemaphoreManyHolders(t *testing.T) {
	t.Parallel()
	const n = 3000
	locks := newClient(t, redistest.Start(t).Client(), core.WithTTL(long))
	all := locks.Semaphore("name", n)
	large := mustLock(t, all, core.WithPermits(1000))
	leases := mustHold(t, all, n-1000)
	for i, lease := range leases {
		if lease.Slot() != 1000+i {
			t.Fatalf("lease %d has slot %d", i, lease.Slot())
		}
	}
	wantErr(t, tryLock(all), core.ErrNotAcquired)
	for _, i := range []int{1500, 3, 700} {
		unlock(t, leases[i])
		if lease := mustLock(t, all); lease.Slot() != 1000+i {
			t.Errorf("slot %d, want %d", lease.Slot(), 1000+i)
		}
	}
	unlock(t, large)
	if lease := mustLock(t, all, core.WithPermits(1000)); lease.Slot() != 0 {
		t.Errorf("slot %d, want 0", lease.Slot())
	}
}
