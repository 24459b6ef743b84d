package multi_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestMultiLoss: when one member goes, by force or with its client, the whole is over and the others are free.
func TestMultiLoss(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		rdb := server.Client()
		locks := coretest.NewClient(t, rdb)
		lease := coretest.MustLock(t, multi(locks, "a", "b", "c"), core.WithTTL(time.Second))
		if forced, err := locks.ForceUnlock(ctx, "b"); !forced || err != nil {
			t.Fatalf("ForceUnlock = %v, %v", forced, err)
		}
		coretest.WaitFor(t, lease.Done(), "the lease to end")
		coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
		coretest.Gone(t, rdb, "lock:a")
		coretest.Gone(t, rdb, "lock:c")
		coretest.WantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
		coretest.WantFree(t, rdb, "a", "b", "c")
	})
}

// TestMultiMaxHold: after the longest time allowed the locks run out, all of them, and none is released before the
// holder has had the rest of the TTL to stop.
func TestMultiMaxHold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	var lost atomic.Int32
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { lost.Add(1) }}))
	lease := coretest.MustLock(t, core.Multi(locks.Mutex("a"), locks.Mutex("b", core.WithMaxHold(500*time.Millisecond))))
	coretest.WaitFor(t, lease.Done(), "the lease to end")
	coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	// There are more losses if the lease of b was over before both were locked.
	testkit.Eventually(t, coretest.Within, "both to be told of", func() bool { return lost.Load() >= 2 })
	for _, name := range []string{"a", "b"} {
		if left := coretest.LeftFor(t, rdb, name); left < coretest.Long-coretest.Within {
			t.Errorf("%s: %v left", name, left)
		}
	}
	coretest.WantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
	coretest.Gone(t, rdb, "lock:a")
	coretest.Gone(t, rdb, "lock:b")
}

// TestMultiClose: when the client of one member is closed, the lease ends with that cause, and the members of other
// clients are free.
func TestMultiClose(t *testing.T) {
	t.Parallel()
	one, two := testkit.Start(t).Client(), testkit.Start(t).Client()
	a, b := coretest.NewClient(t, one, core.WithTTL(coretest.Long)), coretest.NewClient(t, two, core.WithTTL(coretest.Long))
	lock := core.Multi(a.Mutex("a"), b.Mutex("b"))
	lease := coretest.MustLock(t, lock)
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	coretest.WaitFor(t, lease.Done(), "the lease to end")
	coretest.WantErr(t, context.Cause(lease.Context()), core.ErrClosed)
	coretest.Gone(t, one, "lock:a")
	coretest.Gone(t, two, "lock:b")
	_, err := lock.Lock(context.Background())
	coretest.WantErr(t, err, core.ErrClosed)
	coretest.WantFree(t, one, "a")

	// While it waits for a later member.
	held := coretest.MustLock(t, coretest.NewClient(t, one).Mutex("z"), core.WithTTL(coretest.Long))
	c, d := coretest.NewClient(t, two, core.WithTTL(coretest.Long)), coretest.NewClient(t, one, core.WithTTL(coretest.Long))
	waiting := coretest.LockLater(core.Multi(c.Mutex("c"), d.Mutex("z")))
	coretest.AwaitListeners(t, d, "z", 1)
	_ = c.Close()
	coretest.WantErr(t, coretest.Receive(t, waiting), core.ErrClosed)
	coretest.Unlock(t, held)
	coretest.WantFree(t, one, "z")
}

// TestMultiLossWhileWaiting: a member that is lost while a later one is waited for is locked again.
func TestMultiLossWhileWaiting(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		rdb := server.Client()
		held := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("z"), core.WithTTL(coretest.Long))
		waiter := coretest.NewClient(t, rdb, core.WithTTL(time.Second))
		granted := make(chan *core.Lease, 1)
		go func() { granted <- coretest.MustLock(t, multi(waiter, "a", "z")) }()
		for range 2 {
			coretest.AwaitListeners(t, waiter, "z", 1)
			testkit.Eventually(t, coretest.Within, "the first member to be held", func() bool {
				return rdb.Exists(ctx, "lock:a").Val() == 1
			})
			rdb.Del(ctx, "lock:a")
		}
		testkit.Eventually(t, coretest.Within, "the first member to be held again", func() bool {
			return rdb.Exists(ctx, "lock:a").Val() == 1
		})
		coretest.Unlock(t, held)
		select {
		case lease := <-granted:
			coretest.Unlock(t, lease)
		case <-time.After(coretest.Within):
			t.Fatal("the waiter did not get the lock")
		}
		coretest.WantFree(t, rdb, "a", "z")
	})
}

// TestMultiRenewsWhileWaiting: earlier members outlive their TTL while a later one is waited for.
func TestMultiRenewsWhileWaiting(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	held := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("z"), core.WithTTL(coretest.Long))
	var lost atomic.Int32
	renewed := make(chan struct{})
	var renewals atomic.Int32
	waiter := coretest.NewClient(t, rdb, core.WithTTL(2*time.Second), core.WithHooks(core.Hooks{
		Renewed: func(context.Context, core.Renewed) {
			if renewals.Add(1) == 4 {
				close(renewed)
			}
		},
		Lost: func(context.Context, core.Lost) { lost.Add(1) },
	}))
	waiting := coretest.LockLater(coretest.Mutexes(waiter, "a", "z"))
	coretest.WaitFor(t, renewed, "renewals for longer than the TTL")
	coretest.Unlock(t, held)
	if err := coretest.Receive(t, waiting); err != nil || lost.Load() != 0 {
		t.Errorf("%v, %d leases lost", err, lost.Load())
	}
}
