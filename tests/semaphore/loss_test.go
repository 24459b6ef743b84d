package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestSemaphoreSlotsLost: if Redis loses the slots alone, others may get the permits. So the lock is lost for all its holders,
// and each is told by its next renewal.
func TestSemaphoreSlotsLost(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	permits := coretest.MustLock(t, locks.Semaphore("name", 4), core.WithPermits(3), core.WithTTL(3*time.Second))
	reader := coretest.MustLock(t, locks.Read("name"), core.WithTTL(3*time.Second))
	if rdb.Del(t.Context(), "holdfast:slots:{lock:name}").Val() != 1 {
		t.Fatal("there are no slots")
	}
	for _, lease := range []*core.Lease{permits, reader} {
		coretest.WaitFor(t, lease.Done(), "the holder to hear of it")
		coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	}
}

// TestSemaphoreReentryBesideLostSlots: an owner that enters again before the next renewals has a permit that counts.
func TestSemaphoreReentryBesideLostSlots(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks, other := coretest.NewClient(t, rdb), coretest.NewClient(t, rdb)
	two, owner := locks.Semaphore("name", 2), core.WithOwner("owner")
	first := coretest.MustLock(t, two, owner, core.WithTTL(3*time.Second))
	beside := coretest.MustLock(t, two, core.WithTTL(3*time.Second))
	if rdb.Del(t.Context(), "holdfast:slots:{lock:name}").Val() != 1 {
		t.Fatal("there are no slots")
	}
	again := coretest.MustLock(t, other.Semaphore("name", 2), owner, core.WithTTL(coretest.Long))
	if again.Token() <= beside.Token() {
		t.Errorf("token %d after %d, want one of a new grant", again.Token(), beside.Token())
	}
	for _, lease := range []*core.Lease{first, beside} {
		coretest.WaitFor(t, lease.Done(), "the holder to hear of it")
		coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	}
	second := coretest.MustLock(t, other.Semaphore("name", 2), core.WithTTL(coretest.Long))
	if again.Slot() == second.Slot() {
		t.Errorf("two leases have slot %d", again.Slot())
	}
	coretest.WantErr(t, coretest.TryLock(locks.Semaphore("name", 2)), core.ErrNotAcquired)
	for _, lease := range []*core.Lease{again, second} {
		if err := lease.Extend(t.Context(), coretest.Long); err != nil {
			t.Error(err)
		}
	}
}

// TestSemaphoreExpiriesLost: entries of an owner whose shares Redis has lost do not let the owner in without a permit.
func TestSemaphoreExpiriesLost(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	two, owner := locks.Semaphore("name", 2), core.WithOwner("owner")
	writer := coretest.MustLock(t, locks.Write("name"), owner)
	coretest.MustLock(t, two, owner)
	if rdb.Del(t.Context(), "holdfast:share_expiries:{lock:name}").Val() != 1 {
		t.Fatal("there are no expiries")
	}
	again := coretest.MustLock(t, two, owner)
	coretest.Unlock(t, writer)
	coretest.MustLock(t, two)
	coretest.Unlock(t, again)
	coretest.MustLock(t, two)
	if lease, err := two.TryLock(t.Context(), owner); err == nil {
		t.Errorf("a third permit of two, in slot %d", lease.Slot())
	}
}

// TestWriterBesideLostSlots: an exclusive hold stays if Redis loses the slots of its owner's permits. The permits are lost.
func TestWriterBesideLostSlots(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks, other := coretest.NewClient(t, rdb, core.WithTTL(3*time.Second)), coretest.NewClient(t, rdb)
	writer := coretest.MustLock(t, locks.Write("name"))
	two := locks.Semaphore("name", 2)
	inner := coretest.MustLockWith(t, writer.Context(), two)
	loseSlots := func() {
		if rdb.Del(t.Context(), "holdfast:slots:{lock:name}").Val() != 1 {
			t.Fatal("there are no slots")
		}
		coretest.WantErr(t, coretest.TryLock(other.Mutex("name")), core.ErrNotAcquired)
	}
	loseSlots()
	coretest.WaitFor(t, inner.Done(), "the holder of the permit to hear of it")
	coretest.Unlock(t, coretest.MustLockWith(t, writer.Context(), two))
	loseSlots()
	coretest.Unlock(t, writer)
	coretest.Unlock(t, coretest.MustLock(t, other.Mutex("name")))
}

// TestSemaphoreMinHoldBesideManyExpired: an owner enters again while more expired shares are left than one script removes. The
// permits of its expired lease stay taken for their minimum hold time.
func TestSemaphoreMinHoldBesideManyExpired(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	many, owner := locks.Semaphore("name", 1000), core.WithOwner("owner")
	first := coretest.MustLock(t, many, owner, core.WithPermits(3), core.WithMinHold(coretest.Long))
	crashed := coretest.MustLock(t, many, owner, core.WithFixedTTL(time.Second))
	coretest.Unlock(t, first)
	for range 120 {
		coretest.MustLock(t, many, core.WithFixedTTL(200*time.Millisecond)).Abandon()
	}
	crashed.Abandon()
	testkit.Eventually(t, coretest.Within, "the owner's last lease to expire", func() bool {
		info, err := locks.Inspect(t.Context(), "name")
		return err == nil && len(info.Holders) == 0
	})
	coretest.MustLock(t, many, owner)
	info, err := locks.Inspect(t.Context(), "name")
	if err != nil || info.Shares != 4 {
		t.Errorf("%d shares and permits, %v, want the owner's new one and three that stay taken", info.Shares, err)
	}
}
