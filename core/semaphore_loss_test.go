package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSemaphoreSlotsLost: if Redis loses the slots alone, others may get the permits. So the lock is lost for all its holders,
// and each is told by its next renewal.
func TestSemaphoreSlotsLost(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	permits := mustLock(t, locks.Semaphore("name", 4), core.WithPermits(3), core.WithTTL(3*time.Second))
	reader := mustLock(t, locks.Read("name"), core.WithTTL(3*time.Second))
	if rdb.Del(t.Context(), "holdfast:slots:{lock:name}").Val() != 1 {
		t.Fatal("there are no slots")
	}
	for _, lease := range []*core.Lease{permits, reader} {
		waitFor(t, lease.Done(), "the holder to hear of it")
		wantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	}
}

// TestSemaphoreReentryBesideLostSlots: an owner that enters again before the next renewals has a permit that counts.
func TestSemaphoreReentryBesideLostSlots(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks, other := newClient(t, rdb), newClient(t, rdb)
	two, owner := locks.Semaphore("name", 2), core.WithOwner("owner")
	first := mustLock(t, two, owner, core.WithTTL(3*time.Second))
	beside := mustLock(t, two, core.WithTTL(3*time.Second))
	if rdb.Del(t.Context(), "holdfast:slots:{lock:name}").Val() != 1 {
		t.Fatal("there are no slots")
	}
	again := mustLock(t, other.Semaphore("name", 2), owner, core.WithTTL(long))
	if again.Token() <= beside.Token() {
		t.Errorf("token %d after %d, want one of a new grant", again.Token(), beside.Token())
	}
	for _, lease := range []*core.Lease{first, beside} {
		waitFor(t, lease.Done(), "the holder to hear of it")
		wantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	}
	second := mustLock(t, other.Semaphore("name", 2), core.WithTTL(long))
	if again.Slot() == second.Slot() {
		t.Errorf("two leases have slot %d", again.Slot())
	}
	wantErr(t, tryLock(locks.Semaphore("name", 2)), core.ErrNotAcquired)
	for _, lease := range []*core.Lease{again, second} {
		if err := lease.Extend(t.Context(), long); err != nil {
			t.Error(err)
		}
	}
}

// TestSemaphoreExpiriesLost: entries of an owner whose shares Redis has lost do not let the owner in without a permit.
func TestSemaphoreExpiriesLost(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	two, owner := locks.Semaphore("name", 2), core.WithOwner("owner")
	writer := mustLock(t, locks.Write("name"), owner)
	mustLock(t, two, owner)
	if rdb.Del(t.Context(), "holdfast:share_expiries:{lock:name}").Val() != 1 {
		t.Fatal("there are no expiries")
	}
	again := mustLock(t, two, owner)
	unlock(t, writer)
	mustLock(t, two)
	unlock(t, again)
	mustLock(t, two)
	if lease, err := two.TryLock(t.Context(), owner); err == nil {
		t.Errorf("a third permit of two, in slot %d", lease.Slot())
	}
}

// TestWriterBesideLostSlots: an exclusive hold stays if Redis loses the slots of its owner's permits. The permits are lost.
func TestWriterBesideLostSlots(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks, other := newClient(t, rdb, core.WithTTL(3*time.Second)), newClient(t, rdb)
	writer := mustLock(t, locks.Write("name"))
	two := locks.Semaphore("name", 2)
	inner := mustLockWith(t, writer.Context(), two)
	loseSlots := func() {
		if rdb.Del(t.Context(), "holdfast:slots:{lock:name}").Val() != 1 {
			t.Fatal("there are no slots")
		}
		wantErr(t, tryLock(other.Mutex("name")), core.ErrNotAcquired)
	}
	loseSlots()
	waitFor(t, inner.Done(), "the holder of the permit to hear of it")
	unlock(t, mustLockWith(t, writer.Context(), two))
	loseSlots()
	unlock(t, writer)
	unlock(t, mustLock(t, other.Mutex("name")))
}

// TestSemaphoreMinHoldBesideManyExpired: an owner enters again while more expired shares are left than one script removes. The
// permits of its expired lease stay taken for their minimum hold time.
func TestSemaphoreMinHoldBesideManyExpired(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(long))
	many, owner := locks.Semaphore("name", 1000), core.WithOwner("owner")
	first := mustLock(t, many, owner, core.WithPermits(3), core.WithMinHold(long))
	crashed := mustLock(t, many, owner, core.WithFixedTTL(time.Second))
	unlock(t, first)
	for range 120 {
		mustLock(t, many, core.WithFixedTTL(200*time.Millisecond)).Abandon()
	}
	crashed.Abandon()
	testkit.Eventually(t, within, "the owner's last lease to expire", func() bool {
		info, err := locks.Inspect(t.Context(), "name")
		return err == nil && len(info.Holders) == 0
	})
	mustLock(t, many, owner)
	info, err := locks.Inspect(t.Context(), "name")
	if err != nil || info.Shares != 4 {
		t.Errorf("%d shares and permits, %v, want the owner's new one and three that stay taken", info.Shares, err)
	}
}
