package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestNestedLocks: an owner enters an outer lock again from within another lock.
func TestNestedLocks(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(long))
	a := mustLock(t, locks.Mutex("a"))
	waiting := lockLater(locks.Mutex("a"))
	b := mustLockWith(t, a.Context(), locks.Mutex("b"))
	again := mustLockWith(t, b.Context(), locks.Mutex("a"))
	for _, l := range []*core.Lease{again, b, a} {
		unlock(t, l)
	}
	if err := receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestEntryAndTTL: the shorter TTL, of whichever entry, cuts nothing, neither at once nor when a waiter looks.
func TestEntryAndTTL(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	for name, ttls := range map[string][2]time.Duration{
		"longer outside": {long, 10 * time.Second}, "longer inside": {10 * time.Second, long},
	} {
		outer := mustLock(t, locks.Mutex(name), core.WithFixedTTL(ttls[0]))
		mustLockWith(t, outer.Context(), locks.Mutex(name), core.WithFixedTTL(ttls[1]))
		for range 2 {
			if left := leftFor(t, rdb, name); left < long-within {
				t.Errorf("%s: %v left of %v", name, left, long)
			}
		}
	}
}

// TestOwnerIsLetInTwice: of two waiters under one owner's name, the second does not wait for the first to unlock, nor
// for those between them.
func TestOwnerIsLetInTwice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks, second := newClient(t, rdb, core.WithTTL(long)), newClient(t, rdb, core.WithTTL(long))
	held := make(map[string]*core.Lease)
	waiting := make(map[string][]<-chan *core.Lease)
	var between []<-chan error
	for kind, strategy := range onlyQueued(locks) {
		held[kind] = mustLock(t, locks.FairWrite(kind))
		waiting[kind] = append(waiting[kind], leaseLater(t, strategy(kind), core.WithOwner("owner")))
		awaitQueue(t, locks, kind, 1)
		between = append(between, lockLater(locks.Write(kind)))
		awaitQueue(t, locks, kind, 2)
		waiting[kind] = append(waiting[kind], leaseLater(t, onlyQueued(second)[kind](kind), core.WithOwner("owner")))
		awaitQueue(t, locks, kind, 3)
	}
	for _, lease := range held {
		unlock(t, lease)
	}
	for kind := range held {
		first, again := awaitLease(t, waiting[kind][0]), awaitLease(t, waiting[kind][1])
		if first.Token() != again.Token() {
			t.Errorf("%s: tokens %d and %d", kind, first.Token(), again.Token())
		}
		unlock(t, first)
		unlock(t, again)
	}
	for _, done := range between {
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
	}

	unlocked := mustLock(t, locks.Fair("mutex"))
	entering := leaseLater(t, second.Fair("mutex"), core.WithOwner("owner"))
	awaitQueue(t, locks, "mutex", 1)
	_, err := rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error { // a Mutex is quicker
		tx.Del(ctx, "lock:mutex")
		tx.HSet(ctx, "lock:mutex", "owner", 1, "mode", long.Milliseconds(), "token", unlocked.Token()+1)
		tx.PExpire(ctx, "lock:mutex", long)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	unlock(t, awaitLease(t, entering))
	wantErr(t, unlocked.Unlock(ctx), core.ErrNotHeld)
}
