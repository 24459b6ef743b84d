package cronlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSkipsOverlap: a tick that comes while an earlier run goes on, on another replica, is skipped and stays so.
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

// TestWaitsForOverlap: it runs afterwards, with a greater token, although its claim is older than that of a run which
// came in between.
func TestWaitsForOverlap(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	long := newBlocking()
	a := newReplica(t, newClient(t, server.Client()), long.run)
	waits := make(chan struct{}, 1)
	waiting := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waits <- struct{}{} }})
	b := newReplica(t, newClient(t, server.Client(), waiting), idle, cronlock.WithWait(time.Hour))
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
		{"limit", 0, []cronlock.Option{cronlock.WithWait(300 * time.Millisecond)}},
		{
			"deadline", time.Hour - 5*time.Second, // in which a busy machine has an answer of Redis
			[]cronlock.Option{cronlock.WithWait(time.Hour), cronlock.WithStartDeadline(time.Hour)},
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
	r := newReplica(t, newClient(t, testkit.Start(t).Client()), idle, cronlock.WithMinHold(time.Hour))
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
