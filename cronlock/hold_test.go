package cronlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestTimeout: a run that takes too long is told, with a cause of its own, and is not run again.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for _, attempts := range []int{1, 2} {
		rdb := testkit.Start(t).Client()
		var told context.Context
		late := newReplica(t, newClient(t, rdb), func(ctx context.Context) error {
			told = ctx
			<-ctx.Done()
			return ctx.Err()
		}, cronlock.WithTimeout(10*time.Millisecond), cronlock.WithFailover(attempts))
		tick := time.Now().Truncate(time.Second)
		late.fire(tick)
		if cause := context.Cause(told); !errors.Is(cause, cronlock.ErrTimeout) {
			t.Errorf("the run was told %v", cause)
		}
		other := newReplica(t, newClient(t, rdb), idle, cronlock.WithFailover(attempts))
		other.fire(tick)
		other.expect(t, 0, cronlock.Taken)
		expectOutcomes(t, other.locks, cronlock.TimedOut)
	}
}

// TestTimeoutInTime: a run that ends well after all has run.
func TestTimeoutInTime(t *testing.T) {
	t.Parallel()
	r := newReplica(t, newClient(t, testkit.Start(t).Client()), func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}, cronlock.WithTimeout(10*time.Millisecond))
	r.fire(time.Now().Truncate(time.Second))
	expectOutcomes(t, r.locks, cronlock.Success)
}

// TestRunThatDoesNotStop keeps its lease for a grace after its time, and this process to itself for as long as it goes
// on. Then other replicas run the next tick.
func TestRunThatDoesNotStop(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	over, overrun, release := make(chan struct{}), make(chan cronlock.Run, 100), make(chan struct{})
	skipped := make(chan string, 100)
	hooks := core.WithHooks(core.Hooks{
		Incident: func(ctx context.Context, incident core.Incident) {
			if run, _ := cronlock.RunFrom(ctx); incident.Kind == core.IncidentOverrun {
				overrun <- run
			}
		},
		NotRun: func(_ context.Context, not core.NotRun) { skipped <- not.Reason },
	})
	stubborn := newReplica(t, newClient(t, server.Client(), hooks), func(ctx context.Context) error {
		<-ctx.Done()
		close(over)
		<-release
		return ctx.Err()
	}, cronlock.WithTimeout(10*time.Millisecond), cronlock.WithZombieGrace(time.Second),
		core.WithTTL(2*time.Second), cronlock.WithFailover(2))
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
	if err := cronlock.Job(stubborn.locks, "job").Run(t.Context(), stubborn.cron); !errors.Is(err, cronlock.ErrOverlap) {
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
	}, cronlock.WithTimeout(10*time.Millisecond), core.WithTTL(3*time.Second))
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

// TestExclusiveTimeout: the same for the wrapper.
func TestExclusiveTimeout(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	job := cronlock.Exclusive(locks.Mutex, "job",
		cronlock.WithTimeout(10*time.Millisecond))(contextJob(func(ctx context.Context) error {
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, cronlock.ErrTimeout) {
			t.Errorf("the run was told %v", cause)
		}
		return ctx.Err()
	}))
	job.Run()
	if ends := reportsOf(locks).outcomes(); !slices.Equal(ends, []cronlock.Outcome{cronlock.TimedOut}) {
		t.Errorf("finished %q", ends)
	}
}

// TestLostLeaseInProcess: a run whose lease is lost and that continues is not joined by another one in its process.
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

// TestRunHasItsDeadline: the function of a job can find out until when its tick may start, for what it tries again.
func TestRunHasItsDeadline(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	deadlines := make(chan time.Time, 1)
	tell := func(ctx context.Context) error {
		run, _ := cronlock.RunFrom(ctx)
		deadlines <- run.Deadline
		return nil
	}
	r := newReplica(t, locks, tell, cronlock.WithStartDeadline(time.Hour))
	tick := time.Now().Truncate(time.Second)
	r.fire(tick)
	if got := <-deadlines; got.Sub(tick.Add(time.Hour)).Abs() > patience {
		t.Errorf("deadline %v of tick %v, want an hour after it", got, tick)
	}
	wantNow(t, r, t.Context())
	if got := <-deadlines; !got.IsZero() {
		t.Errorf("deadline %v, want none out of turn", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	wantNow(t, r, ctx)
	if want, _ := ctx.Deadline(); want != <-deadlines {
		t.Error("not the deadline of the caller")
	}
	if past := history(t, locks); len(past) != 3 || !past[0].Deadline.IsZero() {
		t.Errorf("history %+v", past)
	}
}

func wantNow(t *testing.T, r *replica, ctx context.Context) {
	t.Helper()
	if err := cronlock.Job(r.locks, "job").Run(ctx, r.cron); err != nil {
		t.Error(err)
	}
}

// TestUnclaimedRunHasItsDeadline: so does one that began without Redis.
func TestUnclaimedRunHasItsDeadline(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	deadlines := make(chan time.Time, 1)
	r := newReplica(t, locks, func(ctx context.Context) error {
		run, _ := cronlock.RunFrom(ctx)
		deadlines <- run.Deadline
		return nil
	}, cronlock.FailOpen(), cronlock.WithStartDeadline(100*time.Millisecond))
	server.Kill()
	tick := time.Now()
	r.fire(tick)
	if got := receive(t, deadlines, "the run"); !got.Equal(tick.Add(100 * time.Millisecond)) {
		t.Errorf("deadline %v of tick %v", got, tick)
	}
}

// TestSkipsOverlap: a tick that comes while an earlier run continues, on another replica, is skipped and stays so.
func TestSkipsOverlap(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	long := newBlocking()
	a := newReplica(t, newClient(t, server.Client()), long.run)
	b := newReplica(t, newClient(t, server.Client()), idle)
	tick := time.Now().Truncate(time.Second)
	wait := a.start(tick)
	receive(t, long.running, "the first run")
	b.fire(tick.Add(time.Second))
	b.expect(t, 0, cronlock.Overlapping)
	if err := b.skips[0].Err; !errors.Is(err, cronlock.ErrOverlap) {
		t.Errorf("skipped with %v", err)
	}
	close(long.release)
	wait()
	b.fire(tick.Add(time.Second))
	b.expect(t, 0, cronlock.Overlapping, cronlock.Taken)
	b.fire(tick.Add(2 * time.Second))
	b.expect(t, 1, cronlock.Overlapping, cronlock.Taken)
	expectOutcomes(t, a.locks, cronlock.Success, cronlock.Skipped, cronlock.Success)
}

// TestWaitsForOverlap: it runs afterwards, with a greater token, although its claim is older than the claim of a run which
// came in between.
func TestWaitsForOverlap(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	long := newBlocking()
	a := newReplica(t, newClient(t, server.Client()), long.run)
	waits := make(chan struct{}, 1)
	waiting := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waits <- struct{}{} }})
	b := newReplica(t, newClient(t, server.Client(), waiting), idle, core.WithWait(time.Hour))
	tick := time.Now().Truncate(time.Second)
	ended := a.start(tick)
	receive(t, long.running, "the first run")
	waited := b.start(tick.Add(time.Second))
	receive(t, waits, "the second waits")
	b.expect(t, 0)
	close(long.release)
	ended()
	waited()
	b.expect(t, 1)
	if first, second := a.runs()[0].Token, b.runs()[0].Token; second <= first {
		t.Errorf("tokens %d, then %d", first, second)
	}
	if runs := expectOutcomes(t, a.locks, cronlock.Success, cronlock.Success); runs[0].Token != b.runs()[0].Token {
		t.Errorf("token %d in the history, %d of the run", runs[0].Token, b.runs()[0].Token)
	}
}

// TestWaitEnds: with its limit, or with the start deadline, by the tick and not by when somebody came for it.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		late time.Duration
		opts []cronlock.Option
	}{
		{"limit", 0, []cronlock.Option{core.WithWait(300 * time.Millisecond)}},
		{
			"deadline", time.Hour - 5*time.Second, // in which a busy machine has an answer of Redis
			[]cronlock.Option{core.WithWait(time.Hour), cronlock.WithStartDeadline(time.Hour)},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			locks := newClient(t, testkit.Start(t).Client())
			r := newReplica(t, locks, idle, test.opts...)
			if _, err := locks.Mutex("cron:{job}").Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.fire(time.Now().Add(-test.late))
			r.expect(t, 0, cronlock.Overlapping)
		})
	}
}

// TestAllowsOverlap: ticks run side by side.
func TestAllowsOverlap(t *testing.T) {
	t.Parallel()
	long := newBlocking()
	r := newReplica(t, newClient(t, testkit.Start(t).Client()), long.run, cronlock.AllowOverlap())
	tick := time.Now().Truncate(time.Second)
	first, second := r.start(tick), r.start(tick.Add(time.Second))
	receive(t, long.running, "one run")
	receive(t, long.running, "the other run")
	expectOutcomes(t, r.locks, cronlock.Running, cronlock.Running)
	close(long.release)
	first()
	second()
	r.expect(t, 2)
}

// TestMinHold: the job counts as running for a while after it has ended.
func TestMinHold(t *testing.T) {
	t.Parallel()
	r := newReplica(t, newClient(t, testkit.Start(t).Client()), idle, core.WithMinHold(time.Hour))
	tick := time.Now().Truncate(time.Second)
	r.fire(tick)
	r.fire(tick.Add(time.Second))
	r.expect(t, 1, cronlock.Overlapping)
}

// TestOptionsOfTheClient: what a service sets for its locks changes nothing of what is promised for jobs.
func TestOptionsOfTheClient(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	options := []core.Option{
		core.WithOwner("the-service"), core.WithWait(time.Hour), core.WithMinHold(time.Hour), core.WithTTL(time.Hour),
	}
	long := newBlocking()
	a := newReplica(t, newClient(t, rdb, options...), long.run)
	b := newReplica(t, newClient(t, rdb, options...), idle)
	tick := time.Now().Truncate(time.Second)
	wait := a.start(tick)
	receive(t, long.running, "the first run")
	b.fire(tick)
	b.fire(tick.Add(time.Second))
	b.expect(t, 0, cronlock.Taken, cronlock.Overlapping)
	close(long.release)
	wait()
	b.fire(tick.Add(2 * time.Second))
	b.expect(t, 1, cronlock.Taken, cronlock.Overlapping)
}

// TestInstanceOfARun: operators find the process of a run that hangs.
func TestInstanceOfARun(t *testing.T) {
	t.Parallel()
	long := newBlocking()
	locks := newClient(t, testkit.Start(t).Client(), core.WithInstance("web-1:7"))
	r := newReplica(t, locks, long.run)
	wait := r.start(time.Now().Truncate(time.Second))
	receive(t, long.running, "the run")
	info, err := locks.Inspect(t.Context(), "cron:{job}")
	if err != nil || len(info.Holders) != 1 || info.Holders[0].Instance != "web-1:7" {
		t.Errorf("%+v, %v", info, err)
	}
	close(long.release)
	wait()
}

// TestMaxHold: core.WithMaxHold ends the lease of a run, whatever keeps runs apart. It does not count the time in which
// a tick waits for an earlier run.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]cronlock.Option{"alone": nil, "overlapping": {cronlock.AllowOverlap()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := newClient(t, testkit.Start(t).Client())
			var told context.Context
			r := newReplica(t, locks, func(ctx context.Context) error {
				told = ctx
				<-ctx.Done()
				return ctx.Err()
			}, append(opts, core.WithMaxHold(50*time.Millisecond))...)
			r.fire(time.Now().Truncate(time.Second))
			if cause := context.Cause(told); !errors.Is(cause, core.ErrLeaseLost) {
				t.Errorf("the run ended because of %v", cause)
			}
			expectOutcomes(t, locks, cronlock.Interrupted)
		})
	}
	t.Run("waiting", func(t *testing.T) {
		t.Parallel()
		const limit = 300 * time.Millisecond
		server, job := testkit.Start(t), newBlocking()
		first := newReplica(t, newClient(t, server.Client()), job.run)
		cause := errors.New("not run")
		waits := newReplica(t, newClient(t, server.Client()), func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(limit / 3):
			}
			cause = context.Cause(ctx)
			return nil
		}, core.WithWait(patience), core.WithMaxHold(limit))
		tick := time.Now().Truncate(time.Second)
		firstEnded := first.start(tick.Add(-time.Second))
		receive(t, job.running, "the first run")
		ended := waits.start(tick)
		time.Sleep(2 * limit) // longer than the run may last
		close(job.release)
		firstEnded()
		ended()
		if cause != nil {
			t.Errorf("the run began with an ended context: %v", cause)
		}
	})
}
