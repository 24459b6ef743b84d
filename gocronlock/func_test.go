package gocronlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestFuncWithoutLock: a scheduler without the locker, or with another one, does not run the function.
func TestFuncWithoutLock(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	locker, other := gocronlock.Locker(locks.Mutex), gocronlock.Locker(locks.Mutex)
	for name, opts := range map[string][]gocron.SchedulerOption{
		"none": nil, "another": {gocron.WithDistributedLocker(other)},
	} {
		told := newEvents()
		fn := locker.Func(func(context.Context) error { t.Error("it runs"); return nil })
		runNow(t, addJob(t, newScheduler(t, opts...), fn, gocron.WithName(name), told.listeners()))
		told.expect(t, "failed", gocronlock.ErrNotLocked.Error())
	}
}

// TestFuncEnds: gocron gets the error of the function or its panic, and the lock is free afterwards. A shutdown ends the
// context of the function.
func TestFuncEnds(t *testing.T) {
	t.Parallel()
	locker := gocronlock.Locker(newClient(t, testkit.Start(t).Client()).Mutex, core.WithMinHold(0))
	s := newScheduler(t, gocron.WithDistributedLocker(locker))
	long, told := newBlocking(), newEvents()
	for want, fn := range map[string]func(context.Context) error{
		"ran": idle, "failed: no paper": func(context.Context) error { return errors.New("no paper") },
		"failed: gocron: panic recovered from no ink": func(context.Context) error { panic("no ink") },
	} {
		job := addJob(t, s, locker.Func(fn), named, told.listeners())
		testkit.Eventually(t, patience, "the lock to be free", func() bool {
			runNow(t, job)
			got := receive(t, told, "the run")
			if !strings.HasPrefix(got, "locked") && got != want {
				t.Errorf("gocron says %q, want %q", got, want)
			}
			return got == want
		})
		if err := s.RemoveJob(job.ID()); err != nil {
			t.Error(err)
		}
	}
	job := addJob(t, s, locker.Func(long.run), gocron.WithName("long"))
	runNow(t, job)
	ctx := receive(t, long.running, "the run")
	go func() {
		<-ctx.Done()
		long.release <- context.Cause(ctx)
	}()
	if err := s.Shutdown(); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("the context ended with %v", context.Cause(ctx))
	}
}

// TestFuncOfTwoRuns: two runs of one job hold two permits, and gocron gives both the same context. The end of one run does
// not end the context of the other one, in either order, and both permits are free afterwards.
func TestFuncOfTwoRuns(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	for range 8 {
		locker := gocronlock.Locker(newClient(t, server.Client()).Limit(2), core.WithMinHold(0))
		runs := make(chan chan error, 2)
		contexts := make(chan context.Context, 2)
		told := newEvents()
		job := addJob(t, newScheduler(t, gocron.WithDistributedLocker(locker)), locker.Func(func(ctx context.Context) error {
			release := make(chan error)
			runs <- release
			contexts <- ctx
			return <-release
		}), named, told.listeners())
		runNow(t, job)
		runNow(t, job)
		first, second := receive(t, runs, "a run"), receive(t, runs, "a run")
		one, two := receive(t, contexts, "a context"), receive(t, contexts, "a context")
		tokenOne, _ := core.TokenFrom(one)
		if tokenTwo, _ := core.TokenFrom(two); tokenOne == tokenTwo {
			t.Errorf("both runs have token %d", tokenOne)
		}
		second <- nil
		told.expect(t, "ran")
		testkit.Eventually(t, patience, "one permit to be free", func() bool {
			info, err := newClient(t, server.Client()).Inspect(t.Context(), "gocron:report")
			return err == nil && len(info.Holders) == 1
		})
		if one.Err() != nil && two.Err() != nil {
			t.Error("the end of one run has ended the other one")
		}
		first <- nil
		told.expect(t, "ran")
		testkit.Eventually(t, patience, "both permits to be free", func() bool {
			return server.Client().Exists(t.Context(), "lock:gocron:report").Val() == 0
		})
	}
}

// TestFuncAfterALoss: a run continues without its lease, and the next one of the same job begins. Each has a lease of its own.
func TestFuncAfterALoss(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locker := gocronlock.Locker(newClient(t, server.Client(), core.WithTTL(6*time.Second)).Mutex, core.WithMinHold(0))
	long, told := newBlocking(), newEvents()
	job := addJob(t, newScheduler(t, gocron.WithDistributedLocker(locker)), locker.Func(long.run), named, told.listeners())
	runNow(t, job)
	lost := receive(t, long.running, "the run")
	forceUnlock(t, server.Client(), "gocron:report")
	receive(t, lost.Done(), "the end of the lease")
	runNow(t, job)
	held := receive(t, long.running, "the next run")
	if held.Err() != nil {
		t.Errorf("the next run begins with an ended context: %v", context.Cause(held))
	}
	long.release <- nil
	long.release <- nil
	first, second := receive(t, told, "an end"), receive(t, told, "an end")
	if (first == "ran") == (second == "ran") || !strings.Contains(first+second, "lease lost") {
		t.Errorf("gocron says %q and %q", first, second)
	}
}

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
