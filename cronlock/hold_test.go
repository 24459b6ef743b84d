package cronlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMaxHold: a run that takes too long is told, with a cause of its own, and is not run again.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	for _, attempts := range []int{1, 2} {
		rdb := testkit.Start(t).Client()
		var told context.Context
		late := newReplica(t, newClient(t, rdb), func(ctx context.Context) error {
			told = ctx
			<-ctx.Done()
			return ctx.Err()
		}, cronlock.WithMaxHold(10*time.Millisecond), cronlock.WithFailover(attempts))
		tick := time.Now().Truncate(time.Second)
		late.fire(tick)
		if cause := context.Cause(told); !errors.Is(cause, cronlock.ErrMaxHold) {
			t.Errorf("the run was told %v", cause)
		}
		other := newReplica(t, newClient(t, rdb), idle, cronlock.WithFailover(attempts))
		other.fire(tick)
		other.expect(t, 0, cronlock.Taken)
		expectOutcomes(t, other.locks, cronlock.TimedOut)
	}
}

// TestMaxHoldInTime: a run that ends well after all has run.
func TestMaxHoldInTime(t *testing.T) {
	t.Parallel()
	r := newReplica(t, newClient(t, testkit.Start(t).Client()), func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}, cronlock.WithMaxHold(10*time.Millisecond))
	r.fire(time.Now().Truncate(time.Second))
	expectOutcomes(t, r.locks, cronlock.Success)
}

// TestRunThatDoesNotStop keeps its lease for a grace after its time, and this process to itself for as long as it goes
// on. Then other replicas run the next tick.
func TestRunThatDoesNotStop(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	over, overrun, release := make(chan struct{}), make(chan cronlock.Run, 1), make(chan struct{})
	skipped := make(chan cronlock.Reason, 10)
	stubborn := newReplica(t, newClient(t, server.Client()), func(ctx context.Context) error {
		<-ctx.Done()
		close(over)
		<-release
		return ctx.Err()
	}, cronlock.WithMaxHold(10*time.Millisecond), cronlock.WithZombieGrace(time.Second),
		cronlock.WithTTL(300*time.Millisecond), cronlock.WithFailover(2),
		cronlock.WithHooks(cronlock.Hooks{
			Overrun: func(run cronlock.Run) { overrun <- run },
			Skipped: func(skip cronlock.Skip) { skipped <- skip.Reason },
		}))
	other := newReplica(t, newClient(t, server.Client()), idle)
	tick := time.Now().Truncate(time.Second)
	ended := stubborn.start(tick)
	receive(t, over, "the end of the context")
	if run := receive(t, overrun, "the end of the grace"); !run.Tick.Equal(tick) || run.Outcome != cronlock.TimedOut {
		t.Errorf("told of %+v", run)
	}
	next := tick
	testkit.Eventually(t, patience, "another replica runs the next tick", func() bool {
		next = next.Add(time.Millisecond)
		other.fire(next)
		return len(other.runs()) > 0
	})
	free := next.Add(time.Millisecond)
	stubborn.fire(free)
	if reason := receive(t, skipped, "the tick in the same process"); reason != cronlock.Overlapping {
		t.Errorf("skipped for %q", reason)
	}
	other.fire(free) // which is left to it
	if runs := other.runs(); len(runs) != 2 {
		t.Errorf("%d runs on the other replica, want 2", len(runs))
	}
	if err := cronlock.RunNow(t.Context(), stubborn.cron, "job"); !errors.Is(err, cronlock.ErrOverlap) {
		t.Errorf("in the same process: %v", err)
	}
	close(release)
	ended()
	runs := history(t, other.locks)
	if last := runs[len(runs)-1]; last.Outcome != cronlock.TimedOut || !last.Tick.Equal(tick) {
		t.Errorf("recorded %+v", last)
	}
}

// TestGrace: until the end of the grace, the lease of a run that does not stop is renewed.
func TestGrace(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	over, release := make(chan struct{}), make(chan struct{})
	stubborn := newReplica(t, newClient(t, server.Client()), func(ctx context.Context) error {
		<-ctx.Done()
		close(over)
		<-release
		return ctx.Err()
	}, cronlock.WithMaxHold(10*time.Millisecond), cronlock.WithTTL(3*time.Second))
	ended := stubborn.start(time.Now().Truncate(time.Second))
	receive(t, over, "the end of the context")
	rdb, last := server.Client(), time.Hour
	testkit.Eventually(t, patience, "the lease is renewed", func() bool {
		left := rdb.PTTL(t.Context(), "lock:cron:{job}").Val()
		renewed := left > last
		last = left
		return renewed
	})
	close(release)
	ended()
}

// TestExclusiveMaxHold: the same for the wrapper.
func TestExclusiveMaxHold(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	var finished cronlock.Run
	hooks := cronlock.Hooks{Finished: func(_ context.Context, run cronlock.Run, _ error) { finished = run }}
	job := cronlock.Exclusive(locks.Mutex, "job", cronlock.WithLogger(quiet), cronlock.WithHooks(hooks),
		cronlock.WithMaxHold(10*time.Millisecond))(contextJob(func(ctx context.Context) error {
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, cronlock.ErrMaxHold) {
			t.Errorf("the run was told %v", cause)
		}
		return ctx.Err()
	}))
	job.Run()
	if finished.Outcome != cronlock.TimedOut {
		t.Errorf("finished %+v", finished)
	}
}

// TestLostLeaseInProcess: a run whose lease is lost and that goes on is not joined by another one in its process.
func TestLostLeaseInProcess(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	running, release := make(chan struct{}), make(chan struct{})
	r := &replica{cron: cron.New(), locks: newClient(t, server.Client())}
	r.add(t, after(time.Hour), func(context.Context) error {
		close(running)
		<-release
		return nil
	})
	tick := time.Now().Truncate(time.Second)
	ended := r.start(tick)
	receive(t, running, "the run")
	expire(t, server.Client())
	r.fire(tick.Add(time.Second))
	r.expect(t, 0, cronlock.Overlapping)
	close(release)
	ended()
}
