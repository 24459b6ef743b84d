package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestNilLease: what a refused caller does with the lease that it did not get panics nowhere, and tells that nothing is held.
func TestNilLease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(long))
	mustLock(t, locks.Mutex("name"))
	lease, err := locks.Mutex("name").TryLock(ctx)
	if err == nil || lease != nil {
		t.Fatalf("lease %v, error %v", lease, err)
	}
	defer lease.Abandon()
	var attempt *core.Attempt
	defer attempt.Abandon()
	var lead *core.Leadership
	for what, err := range map[string]error{
		"Unlock": lease.Unlock(ctx), "Extend": lease.Extend(ctx, long), "cause": context.Cause(lease.Context()),
		"Complete": attempt.Complete(ctx, nil), "Release": attempt.Release(ctx), "Withdraw": attempt.Withdraw(ctx),
		"Hold": attempt.Hold(ctx, "reason"), "Declare": attempt.Declare(ctx, core.StateUnknown), "Resign": lead.Resign(ctx),
	} {
		if !errors.Is(err, core.ErrNotHeld) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if lease.Name() != "" || lease.Owner() != "" || lease.Token() != 0 || lease.Slot() != 0 || !lease.ValidUntil().IsZero() ||
		!errors.Is(lease.Context().Err(), context.Canceled) {
		t.Errorf("a nil lease is %q of %q, with token %d until %v", lease.Name(), lease.Owner(), lease.Token(), lease.ValidUntil())
	}
	waitFor(t, lease.Done(), "the end of a nil lease")
}
