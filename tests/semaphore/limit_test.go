package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestSemaphoreLimit: n hold it and no more, each in a slot of its own with a token of its own. A release lets in the first
// that waits, in the slot that has become free.
func TestSemaphoreLimit(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks, other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	three := locks.Semaphore("name", 3)
	leases := coretest.MustHold(t, three, 3)
	for i, lease := range leases {
		if lease.Slot() != i || i > 0 && lease.Token() <= leases[i-1].Token() {
			t.Errorf("lease %d has slot %d and token %d", i, lease.Slot(), lease.Token())
		}
	}
	_, err := other.Semaphore("name", 3).TryLock(t.Context())
	var refused *core.NotAcquiredError
	if !errors.As(err, &refused) || refused.RetryAfter <= 0 {
		t.Errorf("the fourth: %v", err)
	}
	first := coretest.LeaseLater(t, other.Semaphore("name", 3))
	coretest.AwaitQueue(t, locks, "name", 1)
	second := coretest.LeaseLater(t, three)
	coretest.AwaitQueue(t, locks, "name", 2)
	last := leases[2].Token()
	for i, next := range []<-chan *core.Lease{first, second} {
		coretest.Unlock(t, leases[1-i])
		lease := coretest.AwaitLease(t, next)
		if lease.Slot() != 1-i || lease.Token() <= last {
			t.Errorf("waiter %d has slot %d and token %d after %d", i, lease.Slot(), lease.Token(), last)
		}
		last = lease.Token()
	}
}

// TestSemaphorePermits: several permits are granted all or none, and a large request is not starved by small ones.
func TestSemaphorePermits(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	four := locks.Semaphore("name", 4)
	two := coretest.MustLock(t, four, core.WithPermits(2))
	one := coretest.MustLock(t, four)
	coretest.WantErr(t, coretest.TryLock(locks.Semaphore("name", 4, core.WithPermits(2))), core.ErrNotAcquired)
	large := coretest.LeaseLater(t, four, core.WithPermits(3))
	coretest.AwaitQueue(t, locks, "name", 1)
	coretest.WantErr(t, coretest.TryLock(four), core.ErrNotAcquired) // one is free, but it is not its turn
	small := coretest.LeaseLater(t, four)
	coretest.AwaitQueue(t, locks, "name", 2)
	coretest.Unlock(t, two)
	if lease := coretest.AwaitLease(t, large); lease.Slot() != 0 {
		t.Errorf("slot %d of the large request", lease.Slot())
	}
	coretest.WantErr(t, coretest.TryLock(four), core.ErrNotAcquired)
	coretest.Unlock(t, one)
	if lease := coretest.AwaitLease(t, small); lease.Slot() != 2 {
		t.Errorf("slot %d of the small request, want that of the released one", lease.Slot())
	}
}

// TestSemaphoreChangingLimit: n belongs to each request. A smaller one revokes nothing, a greater one lets in at once.
func TestSemaphoreChangingLimit(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	leases := coretest.MustHold(t, locks.Semaphore("name", 5), 5)
	lower := coretest.LeaseLater(t, locks.Semaphore("name", 3))
	coretest.AwaitQueue(t, locks, "name", 1)
	coretest.Unlock(t, leases[4])
	coretest.Unlock(t, leases[3])
	coretest.AwaitQueue(t, locks, "name", 1)
	coretest.Unlock(t, leases[2])
	if lease := coretest.AwaitLease(t, lower); lease.Slot() != 2 {
		t.Errorf("slot %d, want 2", lease.Slot())
	}
	coretest.MustHold(t, locks.Semaphore("name", 8), 5)
	coretest.WantErr(t, coretest.TryLock(locks.Semaphore("name", 8)), core.ErrNotAcquired)
}

// TestSemaphoreReleaseAddsNothing: releases that are repeated, late or force-released free no permit of another holder.
func TestSemaphoreReleaseAddsNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := testkit.Start(t).Client()
	locks, other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	two := locks.Semaphore("name", 2)
	lost, kept := coretest.MustLock(t, two), coretest.MustLock(t, two)
	if forced, err := other.ForceUnlockHolder(ctx, "name", core.Holder{Token: lost.Token()}); !forced || err != nil {
		t.Fatalf("ForceUnlockHolder = %v, %v", forced, err)
	}
	next := coretest.MustLock(t, two)
	if next.Slot() != 0 {
		t.Errorf("slot %d, want the slot of the holder that was force-released", next.Slot())
	}
	for range 2 {
		coretest.WantErr(t, lost.Unlock(ctx), core.ErrNotHeld)
	}
	coretest.WantErr(t, coretest.TryLock(two), core.ErrNotAcquired)
	coretest.Unlock(t, kept)
	coretest.WantErr(t, kept.Unlock(ctx), core.ErrNotHeld)
	coretest.MustLock(t, two)
	coretest.WantErr(t, coretest.TryLock(two), core.ErrNotAcquired)
}

// TestSemaphoreCrash: a holder that crashed costs its permit until its TTL is over, and nothing else.
func TestSemaphoreCrash(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	two := locks.Semaphore("name", 2)
	kept := coretest.MustLock(t, two)
	coretest.MustLock(t, two, core.WithFixedTTL(100*time.Millisecond)) // never unlocked
	next := coretest.MustLock(t, two)                                  // waits for the TTL
	if kept.Context().Err() != nil || next.Slot() != 1 {
		t.Errorf("the other holder: %v; slot %d", context.Cause(kept.Context()), next.Slot())
	}
	coretest.WantErr(t, coretest.TryLock(two), core.ErrNotAcquired)
}

// TestSemaphoreReentry: an owner enters again without a permit, and cannot have more than at first. Its permits are held
// until its last lease ends.
func TestSemaphoreReentry(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	two := locks.Semaphore("name", 2)
	outer := coretest.MustLock(t, two, core.WithPermits(2))
	inner := coretest.MustLockWith(t, outer.Context(), two, core.WithPermits(2))
	if inner.Token() != outer.Token() || inner.Slot() != outer.Slot() {
		t.Errorf("token %d and slot %d, want %d and %d", inner.Token(), inner.Slot(), outer.Token(), outer.Slot())
	}
	read := coretest.MustLockWith(t, outer.Context(), locks.Read("name"))
	_, err := locks.Write("name").Lock(outer.Context())
	coretest.WantErr(t, err, core.ErrUpgrade)
	coretest.Unlock(t, outer)
	coretest.Unlock(t, inner)
	coretest.WantErr(t, coretest.TryLock(two), core.ErrNotAcquired)
	coretest.Unlock(t, read)

	one := coretest.MustLock(t, two)
	_, err = two.Lock(one.Context(), core.WithPermits(2))
	coretest.WantErr(t, err, core.ErrUpgrade)
	reader := coretest.MustLock(t, locks.Read("other"))
	_, err = locks.Semaphore("other", 2).Lock(reader.Context())
	coretest.WantErr(t, err, core.ErrUpgrade)
	if _, err := locks.Semaphore("other", 2).TryLock(ctx); err != nil {
		t.Errorf("beside a reader: %v", err)
	}
}

// TestSemaphoreUnderForeignLease: under the lease of a lock in another Redis, each call takes permits of its own, also one that
// waits. Under the lease of a client with another connection to the same Redis, a call takes none.
func TestSemaphoreUnderForeignLease(t *testing.T) {
	t.Parallel()
	one, two := testkit.Start(t), testkit.Start(t)
	locks, elsewhere := coretest.NewClient(t, one.Client(), core.WithTTL(coretest.Long)), coretest.NewClient(t, two.Client(), core.WithTTL(coretest.Long))
	outer := coretest.MustLock(t, elsewhere.Mutex("name"))
	var held []*core.Lease
	for range 3 {
		lease, err := locks.Semaphore("name", 3).TryLock(outer.Context())
		if err != nil {
			t.Fatalf("after %d of 3 permits: %v", len(held), err)
		}
		held = append(held, lease)
	}
	_, err := locks.Semaphore("name", 3).TryLock(outer.Context())
	coretest.WantErr(t, err, core.ErrNotAcquired)
	waiting := make(chan *core.Lease, 1)
	go func() {
		lease, _ := locks.Semaphore("name", 3).Lock(outer.Context(), core.WithWait(2*coretest.Within))
		waiting <- lease
	}()
	coretest.AwaitQueue(t, locks, "name", 1)
	coretest.Unlock(t, held[1])
	fourth := coretest.AwaitLease(t, waiting)
	if fourth.Slot() != held[1].Slot() || fourth.Owner() == outer.Owner() {
		t.Errorf("slot %d of owner %s, want that of a new owner", fourth.Slot(), fourth.Owner())
	}

	same := coretest.NewClient(t, two.Relay().Client())
	single := coretest.MustLock(t, elsewhere.Semaphore("single", 1))
	again := coretest.MustLockWith(t, single.Context(), same.Semaphore("single", 1), core.WithWait(coretest.Within))
	if again.Token() != single.Token() {
		t.Error("another client of the same Redis does not enter")
	}
	_, err = same.Semaphore("single", 2).TryLock(single.Context(), core.WithPermits(2))
	coretest.WantErr(t, err, core.ErrUpgrade)
	for _, l := range []*core.Lease{fourth, held[0], held[2], again, single, outer} {
		coretest.Unlock(t, l)
	}
}

// TestSemaphoreDrain: exclusive locks of the same name wait for all permits, and hold back those that come later. A reader
// counts as one.
func TestSemaphoreDrain(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]func(*core.Client) core.Strategy{
		"Write": func(c *core.Client) core.Strategy { return c.Write },
		"Fair":  func(c *core.Client) core.Strategy { return c.Fair },
		"Mutex": func(c *core.Client) core.Strategy { return c.Mutex },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
			three := locks.Semaphore("name", 3)
			leases := append(coretest.MustHold(t, three, 2), coretest.MustLock(t, locks.Read("name")))
			coretest.WantErr(t, coretest.TryLock(three), core.ErrNotAcquired)
			drained := coretest.LeaseLater(t, strategy(locks)("name"))
			if name != "Mutex" { // which is in no queue
				coretest.AwaitQueue(t, locks, "name", 1)
			}
			coretest.Unlock(t, leases[0])
			if name != "Mutex" {
				coretest.WantErr(t, coretest.TryLock(three), core.ErrNotAcquired)
			}
			coretest.Unlock(t, leases[1])
			coretest.Unlock(t, leases[2])
			exclusive := coretest.AwaitLease(t, drained)
			coretest.WantErr(t, coretest.TryLock(three), core.ErrNotAcquired)
			coretest.Unlock(t, exclusive)
			coretest.MustHold(t, three, 3)
		})
	}
}

// TestSemaphoreMulti: permits of several semaphores are taken all or none.
func TestSemaphoreMulti(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	all := locks.Semaphore("all", 2)
	both := func(tenant string) *core.Lock { return core.Multi(locks.Semaphore(tenant, 1), all) }
	first := coretest.MustLock(t, both("tenant:1"))
	coretest.WantErr(t, coretest.TryLock(both("tenant:1")), core.ErrNotAcquired)
	second := coretest.MustLock(t, both("tenant:2"))
	coretest.WantErr(t, coretest.TryLock(both("tenant:3")), core.ErrNotAcquired)
	coretest.MustLock(t, locks.Semaphore("tenant:3", 1)) // what was refused has left nothing
	if second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
	coretest.Unlock(t, first)
	coretest.MustLock(t, both("tenant:1"))
}

// TestSemaphoreMinHold: each permit stays taken for the minimum time.
func TestSemaphoreMinHold(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	three := locks.Semaphore("name", 3)
	early := coretest.MustLock(t, three, core.WithPermits(2), core.WithMinHold(coretest.Long))
	coretest.MustLock(t, three)
	coretest.Unlock(t, early)
	coretest.WantErr(t, coretest.TryLock(three), core.ErrNotAcquired)
	coretest.WantErr(t, coretest.TryLock(locks.Semaphore("name", 4, core.WithPermits(2))), core.ErrNotAcquired)
	coretest.MustLock(t, locks.Semaphore("name", 4))
}

// TestSemaphoreMinHoldOfAReentry: a lease that has entered again leaves no permit taken beside its owner's. The
// owner's last lease leaves them taken for the minimum time of both.
func TestSemaphoreMinHoldOfAReentry(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	three := locks.Semaphore("name", 3)
	outer := coretest.MustLock(t, three)
	for range 3 {
		coretest.Unlock(t, coretest.MustLockWith(t, outer.Context(), three, core.WithMinHold(coretest.Long)))
	}
	two := locks.Semaphore("name", 3, core.WithPermits(2))
	coretest.Unlock(t, coretest.MustLock(t, two))
	coretest.Unlock(t, outer)
	coretest.WantErr(t, coretest.TryLock(locks.Semaphore("name", 3, core.WithPermits(3))), core.ErrNotAcquired)
	coretest.MustLock(t, two)
}

// TestSemaphoreOptions: what cannot be is refused with a message that names it, before anything is sent.
func TestSemaphoreOptions(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for want, lock := range map[string]*core.Lock{
		"Semaphore(n = 0)":             locks.Semaphore("name", 0),
		"Semaphore(n = -1)":            locks.Limit(-1)("name"),
		"Semaphore(n = 1000001)":       locks.Semaphore("name", 1_000_001),
		"WithPermits(0)":               locks.Semaphore("name", 5, core.WithPermits(0)),
		"WithPermits(1001)":            locks.Semaphore("name", 5000, core.WithPermits(1001)),
		"WithPermits(6)":               locks.Semaphore("name", 5, core.WithPermits(6)),
		"WithPermits(1)":               locks.Mutex("name", core.WithPermits(1)),
		"WithPermits(2)":               locks.Read("name", core.WithPermits(2)),
		"WithPermits(3)":               core.Multi(locks.Semaphore("a", 2, core.WithPermits(3)), locks.Mutex("b")),
		"only a Semaphore has permits": core.Multi(locks.Mutex("a", core.WithPermits(1)), locks.Mutex("b")),
	} {
		coretest.WantInvalid(t, coretest.TryLock(lock), core.ErrInvalidOption, want)
	}
	_, err := core.New(testkit.Start(t).Client(), core.WithPermits(2))
	coretest.WantInvalid(t, err, core.ErrInvalidOption, "WithPermits(2)")
	_, err = locks.Once("key", core.WithPermits(2)).Begin(t.Context())
	coretest.WantInvalid(t, err, core.ErrInvalidOption, "WithPermits(2)")
}
