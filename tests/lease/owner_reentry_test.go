package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestNestedLocks: an owner enters an outer lock again from within another lock.
func TestNestedLocks(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	a := coretest.MustLock(t, locks.Mutex("a"))
	waiting := coretest.LockLater(locks.Mutex("a"))
	b := coretest.MustLockWith(t, a.Context(), locks.Mutex("b"))
	again := coretest.MustLockWith(t, b.Context(), locks.Mutex("a"))
	for _, l := range []*core.Lease{again, b, a} {
		coretest.Unlock(t, l)
	}
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestEntryAndTTL: the shorter TTL, of whichever entry, cuts nothing, neither at once nor when a waiter looks.
func TestEntryAndTTL(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	for name, ttls := range map[string][2]time.Duration{
		"longer outside": {coretest.Long, 10 * time.Second}, "longer inside": {10 * time.Second, coretest.Long},
	} {
		outer := coretest.MustLock(t, locks.Mutex(name), core.WithFixedTTL(ttls[0]))
		coretest.MustLockWith(t, outer.Context(), locks.Mutex(name), core.WithFixedTTL(ttls[1]))
		for range 2 {
			if left := coretest.LeftFor(t, rdb, name); left < coretest.Long-coretest.Within {
				t.Errorf("%s: %v left of %v", name, left, coretest.Long)
			}
		}
	}
}

// TestOwnerReenters: of two waiters under one owner's name, the second does not wait for the first to unlock, nor
// for those between them.
func TestOwnerReenters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks, second := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	held := make(map[string]*core.Lease)
	waiting := make(map[string][]<-chan *core.Lease)
	var between []<-chan error
	for kind, strategy := range coretest.OnlyQueued(locks) {
		held[kind] = coretest.MustLock(t, locks.FairWrite(kind))
		waiting[kind] = append(waiting[kind], coretest.LeaseLater(t, strategy(kind), core.WithOwner("owner")))
		coretest.AwaitQueue(t, locks, kind, 1)
		between = append(between, coretest.LockLater(locks.Write(kind)))
		coretest.AwaitQueue(t, locks, kind, 2)
		waiting[kind] = append(waiting[kind], coretest.LeaseLater(t, coretest.OnlyQueued(second)[kind](kind), core.WithOwner("owner")))
		coretest.AwaitQueue(t, locks, kind, 3)
	}
	for _, lease := range held {
		coretest.Unlock(t, lease)
	}
	for kind := range held {
		first, again := coretest.AwaitLease(t, waiting[kind][0]), coretest.AwaitLease(t, waiting[kind][1])
		if first.Token() != again.Token() {
			t.Errorf("%s: tokens %d and %d", kind, first.Token(), again.Token())
		}
		coretest.Unlock(t, first)
		coretest.Unlock(t, again)
	}
	for _, done := range between {
		if err := coretest.Receive(t, done); err != nil {
			t.Error(err)
		}
	}

	unlocked := coretest.MustLock(t, locks.Fair("mutex"))
	entering := coretest.LeaseLater(t, second.Fair("mutex"), core.WithOwner("owner"))
	coretest.AwaitQueue(t, locks, "mutex", 1)
	_, err := rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error { // a Mutex is quicker
		tx.Del(ctx, "lock:mutex")
		tx.HSet(ctx, "lock:mutex", "owner", 1, "mode", fmt.Sprint(coretest.Long.Milliseconds(), " ", unlocked.Token()+1))
		tx.PExpire(ctx, "lock:mutex", coretest.Long)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	coretest.Unlock(t, coretest.AwaitLease(t, entering))
	coretest.WantErr(t, unlocked.Unlock(ctx), core.ErrNotHeld)
}
