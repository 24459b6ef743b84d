package cronlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// expire ends the leases of the runs in progress, as if their runner had not been heard of for long.
func expire(t *testing.T, rdb *redis.Client) {
	t.Helper()
	ctx := t.Context()
	records, err := rdb.Keys(ctx, "*once=*:at:*").Result()
	if err != nil || len(records) == 0 {
		t.Fatalf("records %q, error %v", records, err)
	}
	for _, record := range records {
		if rdb.Type(ctx, record).Val() == "hash" {
			rdb.HSet(ctx, record, "deadline", 1)
		}
	}
	if n := rdb.Del(ctx, "lock:cron:{job}").Val(); n != 1 {
		t.Fatal("the job is not locked")
	}
}

// TestDeadRunner: a tick whose runner died is over, or another replica runs it once more, with a greater token. The
// dead one, should it be alive, changes nothing of what is recorded.
func TestDeadRunner(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		opts    []cronlock.Option
		runs    int
		reasons []cronlock.Reason
		outcome cronlock.Outcome
	}{
		{"no failover", nil, 0, []cronlock.Reason{cronlock.Taken}, cronlock.Lost},
		{"failover", []cronlock.Option{cronlock.WithFailover(2)}, 1, nil, cronlock.Success},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			long := newBlocking()
			dead := newReplica(t, newClient(t, rdb), long.run, test.opts...)
			heir := newReplica(t, newClient(t, rdb), idle, test.opts...)
			tick := time.Now().Truncate(time.Second)
			wait := dead.start(tick)
			told := receive(t, long.running, "the first run")
			expire(t, rdb)
			heir.fire(tick)
			heir.expect(t, test.runs, test.reasons...)
			runs := expectOutcomes(t, heir.locks, test.outcome)
			if test.runs == 1 {
				first, _ := cronlock.RunFrom(told)
				if second := heir.runs()[0]; second.Attempt != 2 || second.Token <= first.Token || runs[0].Attempt != 2 {
					t.Errorf("first %+v, second %+v, recorded %+v", first, second, runs[0])
				}
			}
			close(long.release)
			wait()
			if want := cronlock.Success; history(t, heir.locks)[0].Outcome != want {
				t.Errorf("in the end %+v, want %q", history(t, heir.locks), want)
			}
		})
	}
}

// TestPausedRunnerHasNoHeir: an operator pauses a job and then ends its runner, which runs the function or still waits for
// another run. Another replica, which watches the tick, does not begin it again, not even after Resume.
func TestPausedRunnerHasNoHeir(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		rdb := testkit.Start(t).Client()
		waiting := make(chan struct{}, 10)
		hooks := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waiting <- struct{}{} }})
		ctx, stop := context.WithCancel(t.Context())
		long := newBlocking()
		opts := []cronlock.Option{cronlock.WithFailover(2), cronlock.WithWait(patience)}
		runner := newReplica(t, newClient(t, rdb, hooks), long.run, append(opts, cronlock.WithContext(ctx))...)
		heir := newReplica(t, newClient(t, rdb, hooks), idle, opts...)
		if err := cronlock.Register(t.Context(), heir.cron, "job"); err != nil {
			t.Fatal(err)
		}
		if waits {
			if _, err := heir.locks.Mutex("cron:{job}", core.WithNewOwner()).Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		tick := time.Now().Truncate(time.Second).Add(-time.Second) // long enough ago for a look at the last Resume
		wait := runner.start(tick)
		if waits {
			receive(t, waiting, "the runner waits")
		} else {
			receive(t, long.running, "the run")
		}
		heir.fire(tick)
		receive(t, waiting, "the other one watches")
		if err := cronlock.Pause(t.Context(), heir.locks, "job"); err != nil {
			t.Fatal(err)
		}
		stop()
		wait()
		testkit.Eventually(t, patience, "the heir is told", func() bool { return len(heir.reasons())+len(heir.runs()) > 0 })
		heir.expect(t, 0, cronlock.Paused)
		if err := cronlock.Resume(t.Context(), heir.locks, "job"); err != nil {
			t.Fatal(err)
		}
		heir.fire(tick)
		heir.expect(t, 0, cronlock.Paused, cronlock.Paused)
	}
}

// TestHeirWithoutAnswer: Redis is silent when an heir asks whether the job is paused. It goes on asking, but not once its client is
// closed.
func TestHeirWithoutAnswer(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	t.Cleanup(relay.Heal)
	waiting, granted := make(chan struct{}, 10), make(chan struct{}, 10)
	hooks := core.WithHooks(core.Hooks{
		Wait: func(context.Context, core.Wait) { waiting <- struct{}{} },
		BeginEnd: func(_ context.Context, end core.BeginEnd) {
			if end.Err == nil {
				relay.Refuse(true)
				relay.Reset()
				granted <- struct{}{}
			}
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	long := newBlocking()
	runner := newReplica(t, newClient(t, server.Client()), long.run, cronlock.WithFailover(2), cronlock.WithContext(ctx))
	heir := newReplica(t, newClient(t, relay.Client(), hooks), idle, cronlock.WithFailover(2))
	tick := time.Now().Truncate(time.Second)
	wait := runner.start(tick)
	receive(t, long.running, "the run")
	heir.fire(tick)
	receive(t, waiting, "the other one watches")
	stop()
	wait()
	receive(t, granted, "the grant")
	_ = heir.locks.Close()
	testkit.Eventually(t, patience, "the heir ends", func() bool { return len(heir.reasons()) > 0 })
	heir.expect(t, 0, cronlock.Stopped)
}

// TestOthersWatch: with failover, those who came second watch the run until its end, but do not keep the scheduler from
// stopping.
func TestOthersWatch(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	waits := make(chan struct{}, 1)
	hooks := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waits <- struct{}{} }})
	long := newBlocking()
	a := newReplica(t, newClient(t, rdb), long.run, cronlock.WithFailover(2))
	b := newReplica(t, newClient(t, rdb, hooks), idle, cronlock.WithFailover(2))
	tick := time.Now().Truncate(time.Second)
	ended := a.start(tick)
	receive(t, long.running, "the run")
	b.fire(tick)
	receive(t, waits, "the other one watches")
	b.expect(t, 0)
	close(long.release)
	ended()
	testkit.Eventually(t, patience, "the end is noticed", func() bool { return len(b.reasons()) > 0 })
	b.expect(t, 0, cronlock.Taken)
}

// TestShutdown: a run that is interrupted by the end of its replica is recorded so, or left to another one at once.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		opts    []cronlock.Option
		runs    int
		reasons []cronlock.Reason
		outcome cronlock.Outcome
	}{
		{"no failover", nil, 0, []cronlock.Reason{cronlock.Taken}, cronlock.Interrupted},
		{"failover", []cronlock.Option{cronlock.WithFailover(2)}, 1, nil, cronlock.Success},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			shutdown := errors.New("shutdown")
			ctx, stop := context.WithCancelCause(t.Context())
			long := newBlocking()
			a := newReplica(t, newClient(t, rdb), long.run, append(test.opts, cronlock.WithContext(ctx))...)
			b := newReplica(t, newClient(t, rdb), idle, test.opts...)
			tick := time.Now().Truncate(time.Second)
			wait := a.start(tick)
			told := receive(t, long.running, "the run")
			stop(shutdown)
			wait()
			if !errors.Is(context.Cause(told), shutdown) {
				t.Errorf("the run was told %v", context.Cause(told))
			}
			if runs := a.runs(); len(runs) != 1 || runs[0].Outcome != cronlock.Interrupted {
				t.Errorf("runs %+v", runs)
			}
			b.fire(tick)
			b.expect(t, test.runs, test.reasons...)
			expectOutcomes(t, b.locks, test.outcome)
			a.fire(tick.Add(time.Second))
			a.expect(t, 1, cronlock.Stopped)
		})
	}
}

// TestDoneInSpiteOfShutdown: what was finished is not run again.
func TestDoneInSpiteOfShutdown(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ctx, stop := context.WithCancel(t.Context())
	finish := func(context.Context) error { stop(); return nil }
	a := newReplica(t, newClient(t, rdb), finish, cronlock.WithFailover(2), cronlock.WithContext(ctx))
	b := newReplica(t, newClient(t, rdb), idle, cronlock.WithFailover(2))
	tick := time.Now().Truncate(time.Second)
	a.fire(tick)
	b.fire(tick)
	b.expect(t, 0, cronlock.Taken)
	expectOutcomes(t, b.locks, cronlock.Success)
}

// TestAttempts: a tick that kills its runners, or is interrupted each time, is tried so often and no more.
func TestAttempts(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	tick := time.Now().Truncate(time.Second)
	locks := newClient(t, rdb)
	for range 3 {
		ctx, stop := context.WithCancel(t.Context())
		r := newReplica(t, newClient(t, rdb), func(ctx context.Context) error {
			stop()
			<-ctx.Done()
			return ctx.Err()
		}, cronlock.WithFailover(3), cronlock.WithContext(ctx))
		r.fire(tick)
		r.expect(t, 1)
	}
	late := newReplica(t, locks, idle, cronlock.WithFailover(3))
	late.fire(tick)
	late.expect(t, 0, cronlock.Taken)
	if runs := expectOutcomes(t, locks, cronlock.Interrupted); len(runs) == 1 && runs[0].Attempt != 3 {
		t.Errorf("attempt %d, want 3", runs[0].Attempt)
	}
}

// TestDeadlyTick: a tick whose runners die each time is given up.
func TestDeadlyTick(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	tick := time.Now().Truncate(time.Second)
	long := newBlocking()
	release := sync.OnceFunc(func() { close(long.release) })
	for range 2 {
		r := newReplica(t, newClient(t, rdb), long.run, cronlock.WithFailover(2))
		wait := r.start(tick)
		defer func() { release(); wait() }() // also of a test that has failed
		receive(t, long.running, "the run")
		expire(t, rdb)
	}
	heir := newReplica(t, newClient(t, rdb), idle, cronlock.WithFailover(2))
	for range 2 {
		heir.fire(tick)
	}
	heir.expect(t, 0, cronlock.Taken, cronlock.Taken)
	expectOutcomes(t, heir.locks, cronlock.Lost)
}

// TestFailureIsNoFailover: a job that fails has run.
func TestFailureIsNoFailover(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	tick := time.Now().Truncate(time.Second)
	fails := func(context.Context) error { return errors.New("no paper") }
	a := newReplica(t, newClient(t, rdb), fails, cronlock.WithFailover(2))
	b := newReplica(t, newClient(t, rdb), fails, cronlock.WithFailover(2))
	a.fire(tick)
	b.fire(tick)
	b.expect(t, 0, cronlock.Taken)
	expectOutcomes(t, b.locks, cronlock.Failed)
}
