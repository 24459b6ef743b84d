package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRedlockWaiterPassesAMinority has the name locked for good on each two of five servers, as crashed callers leave
// it, or others that lock on these servers only. A waiter for the Redlock must get it nevertheless.
func TestRedlockWaiterPassesAMinority(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	waits := make(chan struct{}, 100)
	holder := five.Redlock(t)
	other := five.Redlock(t, core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waits <- struct{}{} }}))
	for first := range five.Servers {
		minority := []*core.Lease{
			coretest.MustLock(t, coretest.NewClient(t, five.Looks[first]).Mutex("name")),
			coretest.MustLock(t, coretest.NewClient(t, five.Looks[(first+1)%5]).Fair("name")),
		}
		lease := coretest.MustLock(t, holder.Mutex("name"))
		waiting := coretest.LockLater(other.Mutex("name"))
		coretest.WaitFor(t, waits, "the other to be refused")
		coretest.Unlock(t, lease)
		if err := coretest.Receive(t, waiting); err != nil {
			t.Errorf("waiter: %v", err)
		}
		for _, l := range minority {
			coretest.Unlock(t, l)
		}
		five.AwaitHolders(t, "lock:name", 0)
	}
}

// TestRedlockDefeatWakesNoWaiter has one of three servers forget a lock. A caller gets that server, and gives it back without
// a message: the lock is not free. Otherwise waiters would wake each other as fast as servers answer.
func TestRedlockDefeatWakesNoWaiter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	three := coretest.StartMasters(t, 3)
	lease := coretest.MustLock(t, three.Redlock(t).Mutex("name"), core.WithTTL(coretest.Long))
	three.AwaitHolders(t, "lock:name", 3)
	look, channel := three.Looks[0], "redisson_lock__channel:{lock:name}"
	sub := look.Subscribe(ctx, channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	look.Del(ctx, "lock:name")
	_, err := three.Redlock(t).Mutex("name").TryLock(ctx)
	coretest.WantErr(t, err, core.ErrNotAcquired)
	three.AwaitHolders(t, "lock:name", 2)
	look.Publish(ctx, channel, "the end")
	if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "the end" {
		t.Errorf("message %v: %v", m, err)
	}
	coretest.Unlock(t, lease)
}

// TestRedlockDefeatLeavesNothing has a majority held by others: what the two other servers grant is taken back, and
// kept for no minimum time.
func TestRedlockDefeatLeavesNothing(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	for _, rdb := range five.Looks[:3] {
		_ = coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"))
	}
	_, err := five.Redlock(t).Mutex("name").TryLock(context.Background(), core.WithMinHold(coretest.Long))
	coretest.WantErr(t, err, core.ErrNotAcquired)
	five.AwaitHolders(t, "lock:name", 3)
}

// TestRedlockBesideFair has the name held by a Fair lock on each of three servers, so each request of the Redlock is repeated as
// a request of a queue. Each of these writes to its hold: with -race, the test shows that every server has a hold of its own.
func TestRedlockBesideFair(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	var holders []*core.Lease
	for _, rdb := range three.Looks {
		holders = append(holders, coretest.MustLock(t, coretest.NewClient(t, rdb).Fair("name")))
	}
	m := three.Redlock(t).Mutex("name")
	_, err := m.TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrNotAcquired)
	for _, l := range holders {
		coretest.Unlock(t, l)
	}
	coretest.Unlock(t, coretest.MustLock(t, m))
	three.AwaitHolders(t, "lock:name", 0)
}

// TestRedlockUnderAnotherStrategy: an owner that keeps itself from a majority, by locks of another strategy, learns it at once. It
// would wait for itself, or be granted a lock whose token cannot be committed. On a minority they are no obstacle.
func TestRedlockUnderAnotherStrategy(t *testing.T) {
	t.Parallel()
	me := core.WithOwner("me")
	for name, strategy := range map[string]func(*core.Client) *core.Lock{
		"Fair":      func(c *core.Client) *core.Lock { return c.Fair("name", me) },
		"Read":      func(c *core.Client) *core.Lock { return c.Read("name", me) },
		"Write":     func(c *core.Client) *core.Lock { return c.Write("name", me) },
		"Semaphore": func(c *core.Client) *core.Lock { return c.Semaphore("name", 2, me) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), coretest.Long)
			defer cancel()
			masters := coretest.StartMasters(t, 3)
			lock := masters.Redlock(t).Mutex("name", me)
			for held, rdb := range masters.Clients() {
				if held == 2 {
					_, err := lock.Lock(ctx)
					coretest.WantErr(t, err, core.ErrUpgrade)
					_, err = lock.TryLock(ctx)
					coretest.WantErr(t, err, core.ErrUpgrade)
				}
				coretest.MustLock(t, strategy(coretest.NewClient(t, rdb)))
				if held == 0 {
					coretest.Unlock(t, coretest.MustLockWith(t, ctx, lock))
				}
			}
			_, err := lock.Lock(ctx)
			coretest.WantErr(t, err, core.ErrUpgrade)
			_, err = masters.Redlock(t).Mutex("name", core.WithOwner("another")).TryLock(ctx)
			coretest.WantErr(t, err, core.ErrNotAcquired)
		})
	}
}

// TestRedlockDistinguishesOutageAndRefusal has one of the two servers that are left of five hold the lock: that is too few
// to say that it is held.
func TestRedlockDistinguishesOutageAndRefusal(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	r := coretest.NewRedlock(t, five.Clients(), core.WithNodeTimeout(time.Second))
	coretest.Unlock(t, coretest.MustLock(t, r.Mutex("name")))
	_ = coretest.MustLock(t, coretest.NewClient(t, five.Looks[0]).Mutex("name"))
	for _, s := range five.Servers[2:] {
		s.Pause()
	}
	_, err := r.Mutex("name").TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrUnavailable)
	if errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("%v is a refusal", err)
	}
	for _, s := range five.Servers[2:] {
		s.Resume()
	}
	five.AwaitHolders(t, "lock:name", 1)
}
