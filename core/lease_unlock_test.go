package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUnlockOutlivesTheLease: a lease whose time passes while its release is under way is not reported as lost.
func TestUnlockOutlivesTheLease(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	var lost atomic.Int32
	locks := newClient(t, relay.Client(), core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { lost.Add(1) }}))
	unlock(t, mustLock(t, locks.Mutex("warm")))
	lease := mustLock(t, locks.Mutex("name"), core.WithFixedTTL(2*time.Second))
	until := lease.ValidUntil()
	relay.Hold(testkit.ToClient)
	time.AfterFunc(time.Until(until)+500*time.Millisecond, relay.Deliver)
	unlock(t, lease)
	if n := lost.Load(); n != 0 {
		t.Errorf("%d losses told of a lease that was unlocked", n)
	}
}

// TestUnlockHeedsItsContext: on a frozen server Unlock returns soon after its context, not after its own bound.
func TestUnlockHeedsItsContext(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
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
