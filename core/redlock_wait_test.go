package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// TestRedlockWaiterPassesAMinority has the name locked for good on each two of five servers, as crashed callers leave
// it, or others that lock on these servers only. A waiter for the Redlock must get it nevertheless.
func TestRedlockWaiterPassesAMinority(t *testing.T) {
	t.Parallel()
	five := startMasters(t, 5)
	waits := make(chan struct{}, 1)
	holder := five.redlock(t)
	other := five.redlock(t, core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waits <- struct{}{} }}))
	for first := range five.servers {
		minority := []*core.Lease{
			mustLock(t, newClient(t, five.looks[first]).Mutex("name")),
			mustLock(t, newClient(t, five.looks[(first+1)%5]).Fair("name")),
		}
		lease := mustLock(t, holder.Mutex("name"))
		waiting := lockLater(other.Mutex("name"))
		waitFor(t, waits, "the other to be refused")
		unlock(t, lease)
		if err := receive(t, waiting); err != nil {
			t.Errorf("waiter: %v", err)
		}
		for _, l := range minority {
			unlock(t, l)
		}
		five.awaitHolders(t, "lock:name", 0)
	}
}

// TestRedlockDefeatWakesNoWaiter has one of three servers forget a lock. A caller gets that server, and gives it back without
// a message: the lock is not free. Otherwise waiters would wake each other as fast as servers answer.
func TestRedlockDefeatWakesNoWaiter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	three := startMasters(t, 3)
	lease := mustLock(t, three.redlock(t).Mutex("name"), core.WithTTL(long))
	three.awaitHolders(t, "lock:name", 3)
	look, channel := three.looks[0], "redisson_lock__channel:{lock:name}"
	sub := look.Subscribe(ctx, channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	look.Del(ctx, "lock:name")
	_, err := three.redlock(t).Mutex("name").TryLock(ctx)
	wantErr(t, err, core.ErrNotAcquired)
	three.awaitHolders(t, "lock:name", 2)
	look.Publish(ctx, channel, "the end")
	if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "the end" {
		t.Errorf("message %v: %v", m, err)
	}
	unlock(t, lease)
}

// TestRedlockDefeatLeavesNothing has a majority held by others: what the two other servers grant is taken back, and
// kept for no minimum time.
func TestRedlockDefeatLeavesNothing(t *testing.T) {
	t.Parallel()
	five := startMasters(t, 5)
	for _, rdb := range five.looks[:3] {
		_ = mustLock(t, newClient(t, rdb).Mutex("name"))
	}
	_, err := five.redlock(t).Mutex("name").TryLock(context.Background(), core.WithMinHold(long))
	wantErr(t, err, core.ErrNotAcquired)
	five.awaitHolders(t, "lock:name", 3)
}

// TestRedlockTellsAnOutageFromARefusal has one of the two servers that are left of five hold the lock: that is too few
// to say that it is held.
func TestRedlockTellsAnOutageFromARefusal(t *testing.T) {
	t.Parallel()
	five := startMasters(t, 5)
	r := newRedlock(t, five.clients(), core.WithNodeTimeout(time.Second))
	unlock(t, mustLock(t, r.Mutex("name")))
	_ = mustLock(t, newClient(t, five.looks[0]).Mutex("name"))
	for _, s := range five.servers[2:] {
		s.Pause()
	}
	_, err := r.Mutex("name").TryLock(context.Background())
	wantErr(t, err, core.ErrUnavailable)
	if errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("%v is a refusal", err)
	}
	for _, s := range five.servers[2:] {
		s.Resume()
	}
	five.awaitHolders(t, "lock:name", 1)
}
