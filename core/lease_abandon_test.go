package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// whole is a lock, and the names that it takes.
type whole struct {
	core.Locker
	names []string
}

// wholes returns a lock of every kind, on names of its own.
func wholes(c *core.Client) map[string]whole {
	all := make(map[string]whole)
	for kind, strategy := range strategies(c) {
		all[kind] = whole{strategy(kind), []string{kind}}
	}
	for how, multi := range waysToGather {
		names := []string{how + " a", how + " b"}
		all["Multi, "+how] = whole{multi(c, names...), names}
	}
	names := []string{"mixed a", "mixed b", "mixed c"}
	inner := core.Multi(c.Fair(names[1]), c.Write(names[2]))
	all["Multi, mixed"] = whole{core.Multi(c.Mutex(names[0]), foreign{inner}), names}
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
	if wantErr(t, cause, core.ErrLeaseLost); cause.Error() != "holdfast: lease lost: abandoned by its holder" {
		t.Errorf("the cause is %v", cause)
	}
	wantErr(t, lease.Extend(context.Background(), long), core.ErrNotHeld)
}

// TestAbandon: the caller that abandons a lease is told that it is over, and others are kept out for the rest of the TTL, no
// longer. An Unlock that comes after that touches no other hold.
func TestAbandon(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	other := newClient(t, rdb, core.WithTTL(long))
	for kind := range wholes(other) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var lost losses
			locks := newClient(t, rdb, core.WithTTL(long), lost.hooks())
			lock, rival := wholes(locks)[kind], wholes(other)[kind]
			lease := mustLock(t, lock)
			before := make(map[string]time.Duration)
			for _, name := range lock.names {
				before[name] = left(t, rdb, name)
			}
			lease.Abandon()
			lease.Abandon()
			wantAbandoned(t, lease)
			lost.wantOnce(t, lock.names...)
			for _, name := range lock.names {
				if after := leftFor(t, rdb, name); after <= 0 || after > before[name] {
					t.Errorf("%s is kept for %v, %v were left", name, after, before[name])
				}
			}
			pass(rdb, lock.names...)
			next := mustLock(t, rival)
			if next.Token() <= lease.Token() {
				t.Errorf("token %d after %d", next.Token(), lease.Token())
			}
			wantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
			if err := locks.Close(); err != nil { // after all that the Unlock does in the background
				t.Errorf("close: %v", err)
			}
			unlock(t, next)
			lost.wantOnce(t, lock.names...)
		})
	}
}

// TestAbandonOfQueueGrant: Redis keeps a lock that a message granted to a waiter for its whole TTL, although its first lease is
// shorter.
func TestAbandonOfQueueGrant(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	for kind, strategy := range onlyQueued(locks) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			holder := mustLock(t, locks.Write(kind))
			next := leaseLater(t, strategy(kind))
			awaitQueue(t, locks, kind, 1)
			unlock(t, holder)
			lease := awaitLease(t, next)
			lease.Abandon()
			testkit.Eventually(t, within, "the lock to be kept for its TTL", func() bool {
				return left(t, rdb, kind) > long/2
			})
			wantAbandoned(t, lease)
		})
	}
}

// TestUnlockAfterAbandon: the work has stopped after all, so no caller has to wait any longer.
func TestUnlockAfterAbandon(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks, other := newClient(t, rdb, core.WithTTL(long)), newClient(t, rdb)
	for kind, lock := range wholes(locks) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			lease := mustLock(t, lock)
			lease.Abandon()
			waiting := make([]<-chan error, len(lock.names))
			for i, name := range lock.names {
				waiting[i] = lockLater(other.Write(name))
				testkit.Eventually(t, within, "somebody in line", func() bool {
					info, err := other.Inspect(context.Background(), name)
					return err == nil && len(info.Queue) == 1
				})
			}
			wantErr(t, lease.Unlock(context.Background()), core.ErrNotHeld)
			for i, name := range lock.names {
				if err := receive(t, waiting[i]); err != nil {
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
	for kind := range wholes(newClient(t, rdb)) {
		locks := newClient(t, rdb, core.WithTTL(long))
		lock := wholes(locks)[kind]
		lease, held := mustLock(t, lock), mustLock(t, locks.Mutex("held"))
		lease.Abandon()
		if err := locks.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		wantErr(t, context.Cause(held.Context()), core.ErrClosed)
		wantFree(t, rdb, "held")
		wantAbandoned(t, lease)
		if after := left(t, rdb, lock.names...); after < long-within {
			t.Errorf("%s is kept for %v", kind, after)
		}
		wantErr(t, lease.Unlock(context.Background()), core.ErrNotHeld)
		lease.Abandon()
		if after := left(t, rdb, lock.names...); after < long-within {
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
	locks := newClient(t, rdb, core.WithTTL(ttl), core.WithHooks(core.Hooks{
		Renewed: func(_ context.Context, r core.Renewed) { renewed <- r },
	}))
	var names []string
	for _, lock := range wholes(locks) {
		mustLock(t, lock).Abandon()
		names = append(names, lock.names...)
	}
	attempt := mustBegin(t, locks.Once("attempt"))
	attempt.Abandon()
	for drained := false; !drained; { // of members that were locked in turn, on a slow machine
		select {
		case <-renewed:
		default:
			drained = true
		}
	}
	mustLock(t, locks.Mutex("held"))
	for range 2 {
		select {
		case r := <-renewed:
			if r.Name != "held" || r.Err != nil {
				t.Errorf("renewed: %+v", r)
			}
		case <-time.After(within):
			t.Fatal("no renewal")
		}
	}
	for _, name := range names {
		if after := left(t, rdb, name); after > ttl-time.Second {
			t.Errorf("%s is kept for %v", name, after)
		}
	}
	if r := mustPeek(t, locks.Once("attempt")); r.Lease > ttl-time.Second {
		t.Errorf("the attempt has a lease of %v", r.Lease)
	}
}

// TestAbandonWhatIsOver: a lease that was unlocked, lost or closed stays as it is.
func TestAbandonWhatIsOver(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for kind := range wholes(newClient(t, rdb)) {
		var lost losses
		locks := newClient(t, rdb, core.WithTTL(long), lost.hooks())
		lock := wholes(locks)[kind]
		unlocked := mustLock(t, lock)
		unlock(t, unlocked)
		unlocked.Abandon()
		wantErr(t, context.Cause(unlocked.Context()), core.ErrNotHeld)
		closed := mustLock(t, lock)
		_ = locks.Close()
		waitFor(t, closed.Done(), "the lease to end")
		closed.Abandon()
		wantErr(t, context.Cause(closed.Context()), core.ErrClosed)
		lost.wantOnce(t, lock.names...) // by Close, and by nothing else
		wantFree(t, rdb, lock.names...)
	}
}

// TestAbandonAnEntry: the outer lease of the same owner goes on.
func TestAbandonAnEntry(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	outer := mustLock(t, locks.Mutex("name"))
	inner := mustLockWith(t, outer.Context(), locks.Mutex("name"))
	inner.Abandon()
	if err := outer.Extend(context.Background(), long); err != nil {
		t.Errorf("extend: %v", err)
	}
	unlock(t, outer)
	if after := leftFor(t, rdb, "name"); after > long {
		t.Errorf("kept for %v", after)
	}
	wantErr(t, inner.Unlock(context.Background()), core.ErrNotHeld)
	gone(t, rdb, "lock:name")
}

// TestAbandonInsideDo: fn has returned, so the lock is free at once, and Do says what has happened.
func TestAbandonInsideDo(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	taken := make(chan *core.Lease, 1)
	lock := telling{locks.Mutex("name"), taken}
	err := core.Do(context.Background(), lock, func(ctx context.Context) error {
		(<-taken).Abandon()
		waitFor(t, ctx.Done(), "the context to end")
		return context.Cause(ctx)
	})
	wantErr(t, err, core.ErrLeaseLost)
	gone(t, rdb, "lock:name")
}

// telling tells of each lease that is taken.
type telling struct {
	core.Locker
	taken chan *core.Lease
}

func (l telling) Lock(ctx context.Context, opts ...core.LockOption) (*core.Lease, error) {
	lease, err := l.Locker.Lock(ctx, opts...)
	l.taken <- lease
	return lease, err
}

// TestRedlockAbandon is TestAbandon, TestUnlockAfterAbandon and TestCloseAfterAbandon on five masters.
func TestRedlockAbandon(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	five := startMasters(t, 5)
	var lost losses
	locks, other := five.redlock(t, core.WithTTL(long), lost.hooks()), five.redlock(t, core.WithTTL(long))
	shortest := func(name string) time.Duration {
		five.awaitHolders(t, "lock:"+name, 5)
		shortest := long
		for _, rdb := range five.looks {
			shortest = min(shortest, left(t, rdb, name))
		}
		return shortest
	}

	lease := mustLock(t, locks.Mutex("passed"))
	shortest("passed")
	lease.Abandon()
	lease.Abandon()
	wantAbandoned(t, lease)
	lost.wantOnce(t, "passed")
	_, err := other.Mutex("passed").TryLock(ctx)
	var refused *core.NotAcquiredError
	if !errors.As(err, &refused) || refused.RetryAfter <= 0 || refused.RetryAfter > long {
		t.Errorf("error %v", err)
	}
	for _, rdb := range five.looks[:3] {
		pass(rdb, "passed")
	}
	next := mustLock(t, other.Mutex("passed"), core.WithWait(within))
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	wantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
	if err := next.Extend(ctx, long); err != nil {
		t.Errorf("extend: %v", err)
	}
	unlock(t, next)

	lease = mustLock(t, locks.Mutex("stopped"))
	shortest("stopped")
	lease.Abandon()
	wantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
	five.awaitHolders(t, "lock:stopped", 0)

	lease = mustLock(t, locks.Mutex("closed"))
	shortest("closed")
	lease.Abandon()
	if err := locks.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	wantAbandoned(t, lease)
	if after := shortest("closed"); after < long-within {
		t.Errorf("kept for %v", after)
	}
	lost.wantOnce(t, "passed", "stopped", "closed")
}
