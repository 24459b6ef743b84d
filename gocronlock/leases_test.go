package gocronlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// take locks as gocron does before a run of a job.
func take(t testing.TB, ctx context.Context, locker gocron.Locker) gocron.Lock {
	t.Helper()
	k, err := locker.Lock(ctx, "report")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestLeaseOfAnotherRun: the first run works with the lease that gocron took for the second one, and the other way round. The
// first one ends, and the lease that the second one works with stays.
func TestLeaseOfAnotherRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	locker := gocronlock.Locker(newClient(t, testkit.Start(t).Client()).Limit(2), core.WithMinHold(0))
	first, second := take(t, ctx, locker), take(t, ctx, locker)
	one, two := newBlocking(), newBlocking()
	ended := make(chan error)
	go func() { ended <- locker.Func(one.run)(ctx) }()
	leaseOfFirst := receive(t, one.running, "a run")
	go func() { ended <- locker.Func(two.run)(ctx) }()
	leaseOfSecond := receive(t, two.running, "a run")

	one.release <- nil
	if err := receive(t, ended, "an end"); err != nil {
		t.Errorf("the job returned %v", err)
	}
	if err := second.Unlock(ctx); err != nil {
		t.Errorf("unlock: %v", err)
	}
	if leaseOfFirst.Err() == nil || leaseOfSecond.Err() != nil {
		t.Errorf("the contexts ended with %v and %v", leaseOfFirst.Err(), leaseOfSecond.Err())
	}
	two.release <- nil
	if err := receive(t, ended, "an end"); err != nil {
		t.Errorf("the job returned %v", err)
	}
	if err := first.Unlock(ctx); err != nil {
		t.Errorf("unlock: %v", err)
	}
	if err := locker.Func(idle)(ctx); !errors.Is(err, gocronlock.ErrNotLocked) {
		t.Errorf("after both: %v", err)
	}
}

// TestLeaseThatIsValid: a run has lost its lease, and has not unlocked yet. The next run of the job takes its own lease.
func TestLeaseThatIsValid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := testkit.Start(t)
	locker := gocronlock.Locker(newClient(t, server.Client(), core.WithTTL(6*time.Second)).Mutex, core.WithMinHold(0))
	lost := take(t, ctx, locker)
	forceUnlock(t, server.Client(), "gocron:report")
	err := locker.Func(func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})(ctx)
	if !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("the first run returned %v", err)
	}
	held := take(t, ctx, locker)
	if err := locker.Func(func(ctx context.Context) error { return context.Cause(ctx) })(ctx); err != nil {
		t.Errorf("the next run returned %v", err)
	}
	if err := lost.Unlock(ctx); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("unlock of the lost lease: %v", err)
	}
	if err := held.Unlock(ctx); err != nil {
		t.Errorf("unlock: %v", err)
	}
}
