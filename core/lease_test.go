package core_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestValidityCountsFromSending: neither a grant nor Extend is trusted for longer because the reply was late.
func TestValidityCountsFromSending(t *testing.T) {
	t.Parallel()
	relay := redistest.Start(t).Relay()
	locks := newClient(t, relay.Client())
	warm := mustLock(t, locks.Mutex("warm"))
	if err := warm.Extend(context.Background(), long); err != nil {
		t.Fatal(err)
	}
	const late = time.Second
	var sent time.Time
	slowly := func(call func() error) {
		nth(relay, "lock:name", 1, func() {
			sent = time.Now()
			relay.Hold(redistest.ToClient)
			time.AfterFunc(late, relay.Deliver)
		})
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	var lease *core.Lease
	slowly(func() (err error) {
		lease, err = locks.Mutex("name").Lock(context.Background(), core.WithFixedTTL(time.Minute))
		return err
	})
	if until := lease.ValidUntil(); until.After(sent.Add(time.Minute + late/2)) {
		t.Errorf("granted until %v after the end", until.Sub(sent.Add(time.Minute)))
	}
	slowly(func() error { return lease.Extend(context.Background(), long) })
	if until := lease.ValidUntil(); until.After(sent.Add(long + late/2)) {
		t.Errorf("extended until %v after the end", until.Sub(sent.Add(long)))
	}
}

// TestUnlockOutlivesTheLease: a lease whose time passes while its release is under way is not reported as lost.
func TestUnlockOutlivesTheLease(t *testing.T) {
	t.Parallel()
	relay := redistest.Start(t).Relay()
	var lost atomic.Int32
	locks := newClient(t, relay.Client(), core.WithHooks(core.Hooks{Lost: func(core.Lost) { lost.Add(1) }}))
	unlock(t, mustLock(t, locks.Mutex("warm")))
	lease := mustLock(t, locks.Mutex("name"), core.WithFixedTTL(2*time.Second))
	until := lease.ValidUntil()
	relay.Hold(redistest.ToClient)
	time.AfterFunc(time.Until(until)+500*time.Millisecond, relay.Deliver)
	unlock(t, lease)
	if n := lost.Load(); n != 0 {
		t.Errorf("%d losses told of a lease that was unlocked", n)
	}
}

// TestUnlockHeedsItsContext: on a frozen server Unlock returns soon after its context, not after its own bound.
func TestUnlockHeedsItsContext(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	lease := mustLock(t, newClient(t, server.Client()).Mutex("name"), core.WithTTL(long))
	server.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	wantErr(t, lease.Unlock(ctx), core.ErrUnavailable)
	if took := time.Since(began); took > 3*time.Second { // its own bound is 5 s
		t.Errorf("returned after %v", took)
	}
	server.Resume()
}

// TestLossFoundByUnlock: a lock that was forced is reported when Unlock finds out, and Do tells its caller.
func TestLossFoundByUnlock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	var lost atomic.Int32
	locks := newClient(t, rdb, core.WithTTL(long), core.WithHooks(core.Hooks{Lost: func(core.Lost) { lost.Add(1) }}))
	err := core.Do(ctx, locks.Mutex("name"), func(context.Context) error {
		_, err := locks.ForceUnlock(ctx, "name")
		return err
	})
	wantErr(t, err, core.ErrLeaseLost)
	if lost.Load() != 1 {
		t.Errorf("%d losses told", lost.Load())
	}
}

// TestNestedLocks: an owner enters an outer lock again from within another lock.
func TestNestedLocks(t *testing.T) {
	t.Parallel()
	locks := newClient(t, redistest.Start(t).Client(), core.WithTTL(long))
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

// TestArguments: what New refuses and takes.
func TestArguments(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]redis.UniversalClient{"nil": nil, "typed nil": (*redis.Client)(nil)} {
		if _, err := core.New(rdb); !errors.Is(err, core.ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rdb := redistest.Start(t).Client()
	_, err := core.New(rdb, core.WithTTL(-1))
	wantErr(t, err, core.ErrInvalidOption)
	locks := newClient(t, rdb, core.WithLogger(nil))
	lease := mustLock(t, locks.Mutex(strings.Repeat("x", 512)), core.WithTTL(10*time.Millisecond), core.WithFixedTTL(time.Second))
	waitFor(t, lease.Done(), "the lease to end, which is logged")
	for _, owner := range []string{"granted", "min_hold_until", "ttl", "token", "token_committed", "ä", "x\x7f"} {
		_, err := locks.Mutex("name", core.WithOwner(owner)).TryLock(context.Background())
		wantErr(t, err, core.ErrInvalidOption)
	}
}
