package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMultiLoss: when one member goes, by force or with its client, the whole is over and the others are free.
func TestMultiLoss(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) core.Locker) {
		ctx := context.Background()
		rdb := server.Client()
		locks := newClient(t, rdb)
		lease := mustLock(t, multi(locks, "a", "b", "c"), core.WithTTL(time.Second))
		if forced, err := locks.ForceUnlock(ctx, "b"); !forced || err != nil {
			t.Fatalf("ForceUnlock = %v, %v", forced, err)
		}
		waitFor(t, lease.Done(), "the lease to end")
		wantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
		gone(t, rdb, "lock:a")
		gone(t, rdb, "lock:c")
		wantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
		wantFree(t, rdb, "a", "b", "c")
	})
}

// TestMultiMaxHold: after the longest time allowed the locks run out, all of them, and none is released before the
// holder has had the rest of the TTL to stop.
func TestMultiMaxHold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	var lost atomic.Int32
	locks := newClient(t, rdb, core.WithTTL(long), core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { lost.Add(1) }}))
	lease := mustLock(t, core.Multi(locks.Mutex("a"), locks.Mutex("b", core.WithMaxHold(50*time.Millisecond))))
	waitFor(t, lease.Done(), "the lease to end")
	wantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	testkit.Eventually(t, within, "both to be told of", func() bool { return lost.Load() == 2 })
	for _, name := range []string{"a", "b"} {
		if left := leftFor(t, rdb, name); left < long-within {
			t.Errorf("%s: %v left", name, left)
		}
	}
	wantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
	gone(t, rdb, "lock:a")
	gone(t, rdb, "lock:b")
}

// TestMultiClose: when the client of one member is closed, the lease ends with that cause, and the members of other
// clients are free.
func TestMultiClose(t *testing.T) {
	t.Parallel()
	one, two := testkit.Start(t).Client(), testkit.Start(t).Client()
	a, b := newClient(t, one, core.WithTTL(long)), newClient(t, two, core.WithTTL(long))
	lock := core.Multi(a.Mutex("a"), b.Mutex("b"))
	lease := mustLock(t, lock)
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	waitFor(t, lease.Done(), "the lease to end")
	wantErr(t, context.Cause(lease.Context()), core.ErrClosed)
	gone(t, one, "lock:a")
	gone(t, two, "lock:b")
	_, err := lock.Lock(context.Background())
	wantErr(t, err, core.ErrClosed)
	wantFree(t, one, "a")

	// While it waits for a later member.
	held := mustLock(t, newClient(t, one).Mutex("z"), core.WithTTL(long))
	c, d := newClient(t, two, core.WithTTL(long)), newClient(t, one, core.WithTTL(long))
	waiting := lockLater(core.Multi(c.Mutex("c"), d.Mutex("z")))
	awaitListeners(t, d, "z", 1)
	_ = c.Close()
	wantErr(t, receive(t, waiting), core.ErrClosed)
	unlock(t, held)
	wantFree(t, one, "z")
}

// TestMultiLossWhileWaiting: a member that is lost while a later one is waited for is locked again.
func TestMultiLossWhileWaiting(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) core.Locker) {
		ctx := context.Background()
		rdb := server.Client()
		held := mustLock(t, newClient(t, rdb).Mutex("z"), core.WithTTL(long))
		waiter := newClient(t, rdb, core.WithTTL(time.Second))
		granted := make(chan *core.Lease, 1)
		go func() { granted <- mustLock(t, multi(waiter, "a", "z")) }()
		for range 2 {
			awaitListeners(t, waiter, "z", 1)
			testkit.Eventually(t, within, "the first member to be held", func() bool {
				return rdb.Exists(ctx, "lock:a").Val() == 1
			})
			rdb.Del(ctx, "lock:a")
		}
		testkit.Eventually(t, within, "the first member to be held again", func() bool {
			return rdb.Exists(ctx, "lock:a").Val() == 1
		})
		unlock(t, held)
		select {
		case lease := <-granted:
			unlock(t, lease)
		case <-time.After(within):
			t.Fatal("the waiter did not get the lock")
		}
		wantFree(t, rdb, "a", "z")
	})
}

// TestMultiRenewsWhileWaiting: earlier members outlive their TTL while a later one is waited for.
func TestMultiRenewsWhileWaiting(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	held := mustLock(t, newClient(t, rdb).Mutex("z"), core.WithTTL(long))
	var lost atomic.Int32
	renewed := make(chan struct{})
	var renewals atomic.Int32
	waiter := newClient(t, rdb, core.WithTTL(2*time.Second), core.WithHooks(core.Hooks{
		Renewed: func(context.Context, core.Renewed) {
			if renewals.Add(1) == 4 {
				close(renewed)
			}
		},
		Lost: func(context.Context, core.Lost) { lost.Add(1) },
	}))
	waiting := lockLater(mutexBatch(waiter, "a", "z"))
	waitFor(t, renewed, "renewals for longer than the TTL")
	unlock(t, held)
	if err := receive(t, waiting); err != nil || lost.Load() != 0 {
		t.Errorf("%v, %d leases lost", err, lost.Load())
	}
}
