package cronlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// expire ends the leases of the runs in progress, as if their runner had not been heard of for a long time.
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
		reasons []string
		outcome cronlock.Outcome
	}{
		{"no failover", nil, 0, []string{cronlock.Taken}, cronlock.Lost},
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
		opts := []cronlock.Option{cronlock.WithFailover(2), core.WithWait(patience)}
		runner := newReplica(t, newClient(t, rdb, hooks), long.run, append(opts, cronlock.WithContext(ctx))...)
		heir := newReplica(t, newClient(t, rdb, hooks), idle, opts...)
		if err := cronlock.Register(t.Context(), heir.cron, "job"); err != nil {
			t.Fatal(err)
		}
		if waits {
			if _, err := heir.locks.Mutex("cron:{job}", core.WithOwner("heir")).Lock(t.Context()); err != nil {
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
		watched := heir.start(tick)
		receive(t, waiting, "the other one watches")
		if err := cronlock.Job(heir.locks, "job").Pause(t.Context(), "anna"); err != nil {
			t.Fatal(err)
		}
		stop()
		wait()
		watched()
		heir.expect(t, 0, cronlock.Paused)
		if err := cronlock.Job(heir.locks, "job").Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		heir.fire(tick)
		heir.expect(t, 0, cronlock.Paused, cronlock.Paused)
	}
}

// TestHeirWithoutAnswer: Redis is silent when an heir asks whether the job is paused. It continues asking, but not once its client is
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
	watched := heir.start(tick)
	receive(t, waiting, "the other one watches")
	stop()
	wait()
	receive(t, granted, "the grant")
	_ = heir.locks.Close()
	watched()
	heir.expect(t, 0, cronlock.Stopped)
}

// TestOthersWatch: with failover, those who came second watch the run until its end.
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
	watched := b.start(tick)
	receive(t, waits, "the other one watches")
	b.expect(t, 0)
	close(long.release)
	ended()
	watched()
	b.expect(t, 0, cronlock.Taken)
}

// TestShutdown: a run that is interrupted by the end of its replica is recorded so, or left to another one at once.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		opts    []cronlock.Option
		runs    int
		reasons []string
		outcome cronlock.Outcome
	}{
		{"no failover", nil, 0, []string{cronlock.Taken}, cronlock.Interrupted},
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

// takeover is two replicas with failover, of which the first runs a tick that the second one watches.
type takeover struct {
	tick   time.Time
	runner *replica
	long   *blocking
	ended  func() // waits for the runner
	heir   *replica
}

func newTakeover(
	t *testing.T, server *testkit.Server, chain cron.Chain, fn func(context.Context) error, opts ...cronlock.Option,
) *takeover {
	t.Helper()
	o := &takeover{tick: time.Now().Truncate(time.Second), long: newBlocking()}
	o.runner = newReplica(t, newClient(t, server.Client()), o.long.run, cronlock.WithFailover(2))
	o.ended = o.runner.start(o.tick)
	receive(t, o.long.running, "the first run")
	waits := make(chan struct{}, 1)
	hooks := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) {
		select {
		case waits <- struct{}{}:
		default:
		}
	}})
	o.heir = &replica{cron: cron.New(cron.WithChain(chain.Then)), locks: newClient(t, server.Client(), hooks)}
	o.heir.add(t, at(o.tick, o.tick.Add(time.Hour)), fn, append(opts, cronlock.WithFailover(2), cronlock.WithStartDeadline(time.Hour))...)
	o.heir.cron.Start() // which looks for unfinished ticks
	receive(t, waits, "the other one watches")
	return o
}

// TestStopWaitsForAWatch: a cron that is stopped continues watching, and the end of the jobs' context ends that at once. The tick is
// left to another replica.
func TestStopWaitsForAWatch(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	ctx, shutDown := context.WithCancel(t.Context())
	o := newTakeover(t, server, cron.NewChain(), idle, cronlock.WithContext(ctx))
	stopped := o.heir.cron.Stop().Done()
	select {
	case <-stopped:
		t.Error("the cron has stopped during the watch")
	default:
	}
	shutDown()
	receive(t, stopped, "the cron to stop")
	o.heir.expect(t, 0, cronlock.Stopped)
	expire(t, server.Client())
	third := newReplica(t, newClient(t, server.Client()), idle, cronlock.WithFailover(2))
	third.fire(o.tick)
	third.expect(t, 1)
	if runs := third.runs(); len(runs) == 1 && runs[0].Attempt != 2 {
		t.Errorf("attempt %d, want 2", runs[0].Attempt)
	}
	close(o.long.release)
	o.ended()
}

// TestTakeoverIsARun of the scheduler: its wrappers see it, and Stop waits for it.
func TestTakeoverIsARun(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	var panics counter
	begun, release := make(chan struct{}), make(chan struct{})
	o := newTakeover(t, server, cron.NewChain(cron.Recover(&panics)), func(context.Context) error {
		close(begun)
		<-release
		panic("no paper")
	})
	expire(t, server.Client())
	receive(t, begun, "the second run")
	stopped := o.heir.cron.Stop().Done()
	select {
	case <-stopped:
		t.Error("the cron has stopped during the run")
	default:
	}
	close(release)
	receive(t, stopped, "the cron to stop")
	o.heir.expect(t, 1)
	if n := panics.count(); n != 1 {
		t.Errorf("%d panics reached the wrappers, want 1", n)
	}
	close(o.long.release)
	o.ended()
}

// TestUnfinishedTick: a replica that begins takes over a tick that nobody watches any more, whether its runner has
// died, dies afterwards, or has given it back.
func TestUnfinishedTick(t *testing.T) {
	t.Parallel()
	const deadline = time.Hour
	ticks := at(time.Now().Truncate(time.Second).Add(-time.Minute), time.Now().Add(time.Hour))
	tick := ticks(time.Time{})
	for name, test := range map[string]struct {
		before, after func(t *testing.T, server *testkit.Server, stop func())
	}{
		"dead":        {before: func(t *testing.T, s *testkit.Server, _ func()) { expire(t, s.Client()) }},
		"dies":        {after: func(t *testing.T, s *testkit.Server, _ func()) { expire(t, s.Client()) }},
		"interrupted": {before: func(_ *testing.T, _ *testkit.Server, stop func()) { stop() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			options := []cronlock.Option{cronlock.WithFailover(2), cronlock.WithStartDeadline(deadline)}
			ctx, stop := context.WithCancelCause(t.Context())
			long := newBlocking()
			a := &replica{cron: cron.New(), locks: newClient(t, server.Client())}
			a.add(t, ticks, long.run, append(options, cronlock.WithContext(ctx))...)
			ended := a.start(tick)
			receive(t, long.running, "the first run")
			end := func() { stop(errors.New("shutdown")); ended() }
			if test.before != nil {
				test.before(t, server, end)
			}
			watches := make(chan struct{}, 100)
			hooks := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { watches <- struct{}{} }})
			b := &replica{cron: cron.New(), locks: newClient(t, server.Client(), hooks)}
			b.add(t, ticks, idle, options...)
			b.cron.Start()
			if test.after != nil {
				receive(t, watches, "the tick is watched")
				test.after(t, server, end)
			}
			testkit.Eventually(t, patience, "the tick is taken over", func() bool { return len(b.runs()) > 0 })
			if run := b.runs()[0]; run.Attempt != 2 || !run.Tick.Equal(tick) {
				t.Errorf("run %+v", run)
			}
			<-b.cron.Stop().Done()
			end()
		})
	}
}

// TestFinishedTicksAreLeft alone by a replica that begins, and so are those without failover.
func TestFinishedTicksAreLeft(t *testing.T) {
	t.Parallel()
	for _, attempts := range []int{1, 2} {
		server := testkit.Start(t)
		ticks := at(time.Now().Truncate(time.Second).Add(-time.Minute), time.Now().Add(time.Hour))
		options := []cronlock.Option{cronlock.WithFailover(attempts), cronlock.WithStartDeadline(time.Hour)}
		a := &replica{cron: cron.New(), locks: newClient(t, server.Client())}
		b := &replica{cron: cron.New(), locks: newClient(t, server.Client())}
		long := newBlocking()
		if attempts > 1 {
			close(long.release)
		}
		a.add(t, ticks, long.run, options...)
		b.add(t, ticks, idle, options...)
		ended := a.start(ticks(time.Time{}))
		receive(t, long.running, "the run")
		if attempts > 1 {
			ended()
		} else {
			expire(t, server.Client())
		}
		begin(t, b)
		b.expect(t, 0)
		if attempts == 1 {
			close(long.release)
			ended()
		}
	}
}

// TestFullRedisIsAskedAgain: a server that refuses writes for a moment costs no tick.
func TestFullRedisIsAskedAgain(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	admin := server.Client()
	refused := make(chan struct{}, 100)
	hooks := core.WithHooks(core.Hooks{BeginEnd: func(_ context.Context, end core.BeginEnd) {
		if end.Err != nil {
			select {
			case refused <- struct{}{}:
			default:
			}
		}
	}})
	r := newReplica(t, newClient(t, server.Client(), hooks), idle)
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	wait := r.start(time.Now().Truncate(time.Second))
	for range 4 {
		receive(t, refused, "a refusal")
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	wait()
	r.expect(t, 1)
}

// TestRemovedJobIsNotTakenOver: a replica that watches a tick of a job which was removed meanwhile does not start it.
func TestRemovedJobIsNotTakenOver(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	begun, release := make(chan struct{}), make(chan struct{})
	ctx, shutDown := context.WithCancel(t.Context())
	runner := newReplica(t, newClient(t, server.Client()), func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		<-release
		return ctx.Err()
	}, cronlock.WithFailover(3), cronlock.WithContext(ctx))
	skipped := make(chan core.NotRun, 100)
	watching := make(chan struct{}, 10)
	hooks := core.WithHooks(core.Hooks{
		NotRun: func(_ context.Context, not core.NotRun) { skipped <- not },
		Wait:   func(context.Context, core.Wait) { watching <- struct{}{} },
	})
	c := cron.New()
	id, err := cronlock.AddFunc(c, newClient(t, server.Client(), hooks), "@every 24h", "job", func(context.Context) error {
		t.Error("the removed job runs")
		return nil
	}, cronlock.WithFailover(3))
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	defer c.Stop()
	tick := time.Now().Truncate(time.Second)
	wait := runner.start(tick)
	receive(t, begun, "the run")
	go cronlock.Fire(c, "job", tick)
	receive(t, watching, "it watches")
	c.Remove(id)
	shutDown()
	close(release)
	wait()
	if skip := receive(t, skipped, "the watcher"); skip.Reason != cronlock.Stopped {
		t.Errorf("skipped as %q: %v", skip.Reason, skip.Err)
	}
}
