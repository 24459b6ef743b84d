package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// whole is a lock, and the names that it takes.
type whole struct {
	coretest.Locker
	names []string
}

// wholes returns a lock of every kind, on names of its own.
func wholes(c *core.Client) map[string]whole {
	all := make(map[string]whole)
	for kind, strategy := range coretest.Strategies(c) {
		all[kind] = whole{strategy(kind), []string{kind}}
	}
	for how, multi := range coretest.Multis {
		names := []string{how + " a", how + " b"}
		all["Multi, "+how] = whole{multi(c, names...), names}
	}
	names := []string{"mixed a", "mixed b", "mixed c"}
	inner := core.Multi(c.Fair(names[1]), c.Write(names[2]))
	all["Multi, mixed"] = whole{core.Multi(c.Mutex(names[0]), inner), names}
	return all
}

// left returns for how long Redis keeps the locks of these names, the shortest time.
func left(t testing.TB, rdb *redis.Client, names ...string) time.Duration {
	t.Helper()
	shortest := time.Duration(1<<63 - 1)
	for _, name := range names {
		shortest = min(shortest, rdb.PTTL(context.Background(), "lock:"+name).Val())
	}
	return shortest
}

// pass lets the TTL of these names end. The hash of a lock expires with the last hold.
func pass(rdb *redis.Client, names ...string) {
	for _, name := range names {
		rdb.PExpire(context.Background(), "lock:"+name, -time.Second)
		rdb.PExpire(context.Background(), "holdfast:share_expiries:{lock:"+name+"}", -time.Second)
	}
}

// wantAbandoned checks what the holder sees of a lease that was abandoned.
func wantAbandoned(t testing.TB, lease *core.Lease) {
	t.Helper()
	select {
	case <-lease.Done():
	default:
		t.Error("the context has not ended")
	}
	cause := context.Cause(lease.Context())
	if coretest.WantErr(t, cause, core.ErrLeaseLost); cause.Error() != "holdfast: lease lost: abandoned by its holder" {
		t.Errorf("the cause is %v", cause)
	}
	coretest.WantErr(t, lease.Extend(context.Background(), coretest.Long), core.ErrNotHeld)
}

// TestAbandon: the caller that abandons a lease is told that it is over, and others are kept out for the rest of the TTL, no
// longer. An Unlock that comes after that touches no other hold.
func TestAbandon(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind := range wholes(other) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var lost coretest.Losses
			locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), lost.Hooks())
			lock, rival := wholes(locks)[kind], wholes(other)[kind]
			lease := coretest.MustLock(t, lock)
			before := make(map[string]time.Duration)
			for _, name := range lock.names {
				before[name] = left(t, rdb, name)
			}
			lease.Abandon()
			lease.Abandon()
			wantAbandoned(t, lease)
			lost.WantOnce(t, lock.names...)
			for _, name := range lock.names {
				if after := coretest.LeftFor(t, rdb, name); after <= 0 || after > before[name] {
					t.Errorf("%s is kept for %v, %v were left", name, after, before[name])
				}
			}
			pass(rdb, lock.names...)
			next := coretest.MustLock(t, rival)
			if next.Token() <= lease.Token() {
				t.Errorf("token %d after %d", next.Token(), lease.Token())
			}
			coretest.WantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
			if err := locks.Close(); err != nil { // after all that the Unlock does in the background
				t.Errorf("close: %v", err)
			}
			coretest.Unlock(t, next)
			lost.WantOnce(t, lock.names...)
		})
	}
}

// TestAbandonOfQueueGrant: Redis keeps a lock that a message granted to a waiter for its whole TTL, although its first lease is
// shorter.
func TestAbandonOfQueueGrant(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind, strategy := range coretest.OnlyQueued(locks) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			holder := coretest.MustLock(t, locks.Write(kind))
			next := coretest.LeaseLater(t, strategy(kind))
			coretest.AwaitQueue(t, locks, kind, 1)
			coretest.Unlock(t, holder)
			lease := coretest.AwaitLease(t, next)
			lease.Abandon()
			testkit.Eventually(t, coretest.Within, "the lock to be kept for its TTL", func() bool {
				return left(t, rdb, kind) > coretest.Long/2
			})
			wantAbandoned(t, lease)
		})
	}
}

// TestUnlockAfterAbandon: the work has stopped after all, so no caller has to wait any longer.
func TestUnlockAfterAbandon(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks, other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb)
	for kind, lock := range wholes(locks) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			lease := coretest.MustLock(t, lock)
			lease.Abandon()
			waiting := make([]<-chan error, len(lock.names))
			for i, name := range lock.names {
				waiting[i] = coretest.LockLater(other.Write(name))
				testkit.Eventually(t, coretest.Within, "somebody in line", func() bool {
					info, err := other.Inspect(context.Background(), name)
					return err == nil && len(info.Queue) == 1
				})
			}
			coretest.WantErr(t, lease.Unlock(context.Background()), core.ErrNotHeld)
			for i, name := range lock.names {
				if err := coretest.Receive(t, waiting[i]); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestCloseAfterAbandon: a client that is closed, because its process ends, frees what it holds but not this.
func TestCloseAfterAbandon(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for kind := range wholes(coretest.NewClient(t, rdb)) {
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
		lock := wholes(locks)[kind]
		lease, held := coretest.MustLock(t, lock), coretest.MustLock(t, locks.Mutex("held"))
		lease.Abandon()
		if err := locks.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		coretest.WantErr(t, context.Cause(held.Context()), core.ErrClosed)
		coretest.WantFree(t, rdb, "held")
		wantAbandoned(t, lease)
		if after := left(t, rdb, lock.names...); after < coretest.Long-coretest.Within {
			t.Errorf("%s is kept for %v", kind, after)
		}
		coretest.WantErr(t, lease.Unlock(context.Background()), core.ErrNotHeld)
		lease.Abandon()
		if after := left(t, rdb, lock.names...); after < coretest.Long-coretest.Within {
			t.Errorf("%s is kept for %v after an Unlock of a closed client", kind, after)
		}
	}
}

// TestAbandonedIsNotRenewed, while another lease of the same client, which is due at the same time, is.
func TestAbandonedIsNotRenewed(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	rdb := testkit.Start(t).Client()
	renewed := make(chan core.Renewed, 100)
	locks := coretest.NewClient(t, rdb, core.WithTTL(ttl), core.WithHooks(core.Hooks{
		Renewed: func(_ context.Context, r core.Renewed) { renewed <- r },
	}))
	var names []string
	for _, lock := range wholes(locks) {
		coretest.MustLock(t, lock).Abandon()
		names = append(names, lock.names...)
	}
	attempt := coretest.MustBegin(t, locks.Once("attempt"))
	attempt.Abandon()
	for drained := false; !drained; { // of members that were locked in turn, on a slow machine
		select {
		case <-renewed:
		default:
			drained = true
		}
	}
	coretest.MustLock(t, locks.Mutex("held"))
	for range 2 {
		select {
		case r := <-renewed:
			if r.Name != "held" || r.Err != nil {
				t.Errorf("renewed: %+v", r)
			}
		case <-time.After(coretest.Within):
			t.Fatal("no renewal")
		}
	}
	for _, name := range names {
		if after := left(t, rdb, name); after > ttl-time.Second {
			t.Errorf("%s is kept for %v", name, after)
		}
	}
	if r := coretest.MustPeek(t, locks.Once("attempt")); r.Lease > ttl-time.Second {
		t.Errorf("the attempt has a lease of %v", r.Lease)
	}
}

// TestAbandonWhatIsOver: a lease that was unlocked, lost or closed stays as it is.
func TestAbandonWhatIsOver(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for kind := range wholes(coretest.NewClient(t, rdb)) {
		var lost coretest.Losses
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), lost.Hooks())
		lock := wholes(locks)[kind]
		unlocked := coretest.MustLock(t, lock)
		coretest.Unlock(t, unlocked)
		unlocked.Abandon()
		coretest.WantErr(t, context.Cause(unlocked.Context()), core.ErrNotHeld)
		closed := coretest.MustLock(t, lock)
		_ = locks.Close()
		coretest.WaitFor(t, closed.Done(), "the lease to end")
		closed.Abandon()
		coretest.WantErr(t, context.Cause(closed.Context()), core.ErrClosed)
		lost.WantOnce(t, lock.names...) // by Close, and by nothing else
		coretest.WantFree(t, rdb, lock.names...)
	}
}

// TestAbandonAnEntry: the outer lease of the same owner continues.
func TestAbandonAnEntry(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	outer := coretest.MustLock(t, locks.Mutex("name"))
	inner := coretest.MustLockWith(t, outer.Context(), locks.Mutex("name"))
	inner.Abandon()
	if err := outer.Extend(context.Background(), coretest.Long); err != nil {
		t.Errorf("extend: %v", err)
	}
	coretest.Unlock(t, outer)
	if after := coretest.LeftFor(t, rdb, "name"); after > coretest.Long {
		t.Errorf("kept for %v", after)
	}
	coretest.WantErr(t, inner.Unlock(context.Background()), core.ErrNotHeld)
	coretest.Gone(t, rdb, "lock:name")
}

// TestRedlockAbandon is TestAbandon, TestUnlockAfterAbandon and TestCloseAfterAbandon on five masters.
func TestRedlockAbandon(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	five := coretest.StartMasters(t, 5)
	var lost coretest.Losses
	locks, other := five.Redlock(t, core.WithTTL(coretest.Long), lost.Hooks()), five.Redlock(t, core.WithTTL(coretest.Long))
	shortest := func(name string) time.Duration {
		five.AwaitHolders(t, "lock:"+name, 5)
		shortest := coretest.Long
		for _, rdb := range five.Looks {
			shortest = min(shortest, left(t, rdb, name))
		}
		return shortest
	}

	lease := coretest.MustLock(t, locks.Mutex("passed"))
	shortest("passed")
	lease.Abandon()
	lease.Abandon()
	wantAbandoned(t, lease)
	lost.WantOnce(t, "passed")
	_, err := other.Mutex("passed").TryLock(ctx)
	var refused *core.NotAcquiredError
	if !errors.As(err, &refused) || refused.RetryAfter <= 0 || refused.RetryAfter > coretest.Long {
		t.Errorf("error %v", err)
	}
	for _, rdb := range five.Looks[:3] {
		pass(rdb, "passed")
	}
	next := coretest.MustLock(t, other.Mutex("passed"), core.WithWait(coretest.Within))
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	coretest.WantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
	if err := next.Extend(ctx, coretest.Long); err != nil {
		t.Errorf("extend: %v", err)
	}
	coretest.Unlock(t, next)

	lease = coretest.MustLock(t, locks.Mutex("stopped"))
	shortest("stopped")
	lease.Abandon()
	coretest.WantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
	five.AwaitHolders(t, "lock:stopped", 0)

	lease = coretest.MustLock(t, locks.Mutex("closed"))
	shortest("closed")
	lease.Abandon()
	if err := locks.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	wantAbandoned(t, lease)
	if after := shortest("closed"); after < coretest.Long-coretest.Within {
		t.Errorf("kept for %v", after)
	}
	lost.WantOnce(t, "passed", "stopped", "closed")
}
