package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestUnlockOutlivesTheLease: a lease whose time passes while its release is under way is not reported as lost.
func TestUnlockOutlivesTheLease(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	var lost atomic.Int32
	locks := coretest.NewClient(t, relay.Client(), core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { lost.Add(1) }}))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	lease := coretest.MustLock(t, locks.Mutex("name"), core.WithFixedTTL(2*time.Second))
	until := lease.ValidUntil()
	relay.Hold(testkit.ToClient)
	time.AfterFunc(time.Until(until)+500*time.Millisecond, relay.Deliver)
	coretest.Unlock(t, lease)
	if n := lost.Load(); n != 0 {
		t.Errorf("%d losses told of a lease that was unlocked", n)
	}
}

// TestUnlockHeedsItsContext: on a frozen server Unlock returns soon after its context, not after its own bound.
func TestUnlockHeedsItsContext(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	lease := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
	server.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := lease.Unlock(ctx)
	coretest.WantErr(t, err, core.ErrUnavailable)
	coretest.WantErr(t, err, context.DeadlineExceeded) // at its own bound, Redis has not answered in time
	server.Resume()
}

// TestNilLease: what a refused caller does with the lease that it did not get panics nowhere, and tells that nothing is held.
func TestNilLease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	coretest.MustLock(t, locks.Mutex("name"))
	lease, err := locks.Mutex("name").TryLock(ctx)
	if err == nil || lease != nil {
		t.Fatalf("lease %v, error %v", lease, err)
	}
	defer lease.Abandon()
	var attempt *core.Attempt
	defer attempt.Abandon()
	var lead *core.Leadership
	for what, err := range map[string]error{
		"Unlock": lease.Unlock(ctx), "Extend": lease.Extend(ctx, coretest.Long), "cause": context.Cause(lease.Context()),
		"Complete": attempt.Complete(ctx, nil), "Release": attempt.Release(ctx),
		"Hold": attempt.Hold(ctx, "reason"), "Declare": attempt.Declare(ctx, core.StateUnknown), "Resign": lead.Resign(ctx),
		"Proclaim": lead.Proclaim(ctx, "value"), "cause of an attempt": context.Cause(attempt.Context()),
		"cause of a leadership": context.Cause(lead.Context()),
	} {
		if !errors.Is(err, core.ErrNotHeld) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if lease.Name() != "" || lease.Owner() != "" || lease.Token() != 0 || lease.Slot() != 0 || !lease.ValidUntil().IsZero() ||
		!errors.Is(lease.Context().Err(), context.Canceled) {
		t.Errorf("a nil lease is %q of %q, with token %d until %v", lease.Name(), lease.Owner(), lease.Token(), lease.ValidUntil())
	}
	coretest.WaitFor(t, lease.Done(), "the end of a nil lease")
	if attempt.Token() != 0 || attempt.Number() != 0 || !attempt.ValidUntil().IsZero() || lead.Term() != 0 || !lead.ValidUntil().IsZero() {
		t.Errorf("a nil attempt is number %d with token %d until %v, and a nil leadership is term %d until %v",
			attempt.Number(), attempt.Token(), attempt.ValidUntil(), lead.Term(), lead.ValidUntil())
	}
}

// TestValidityCountsFromSending: neither a grant nor Extend is trusted for longer because the reply was late.
func TestValidityCountsFromSending(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	locks := coretest.NewClient(t, relay.Client())
	warm := coretest.MustLock(t, locks.Mutex("warm"))
	if err := warm.Extend(context.Background(), coretest.Long); err != nil {
		t.Fatal(err)
	}
	const late = time.Second
	var sent time.Time
	slowly := func(call func() error) {
		coretest.Nth(relay, "lock:name", 1, func() {
			sent = time.Now()
			relay.Hold(testkit.ToClient)
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
	slowly(func() error { return lease.Extend(context.Background(), coretest.Long) })
	if until := lease.ValidUntil(); until.After(sent.Add(coretest.Long + late/2)) {
		t.Errorf("extended until %v after the end", until.Sub(sent.Add(coretest.Long)))
	}
}
