package cronlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// at is a schedule of these ticks.
func at(ticks ...time.Time) schedule {
	return func(t time.Time) time.Time {
		for _, tick := range ticks {
			if tick.After(t) {
				return tick
			}
		}
		return time.Time{}
	}
}

// TestCatchUp: a replica that comes up runs the latest tick that all have missed, if the window allows.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	latest := ago(10 * time.Minute)
	schedule := at(ago(5*time.Hour), ago(time.Hour), latest, now.Add(time.Hour))
	for _, test := range []struct {
		name   string
		before []time.Time // what ran before
		paused bool
		opts   []cronlock.Option
		want   bool
	}{
		{"missed two", []time.Time{ago(5 * time.Hour)}, false, []cronlock.Option{cronlock.WithCatchUp(time.Hour)}, true},
		{"no catching up", []time.Time{ago(5 * time.Hour)}, false, nil, false},
		{"too old", []time.Time{ago(5 * time.Hour)}, false, []cronlock.Option{cronlock.WithCatchUp(5 * time.Minute)}, false},
		{"nothing missed", []time.Time{latest}, false, []cronlock.Option{cronlock.WithCatchUp(time.Hour)}, false},
		{"never run", nil, false, []cronlock.Option{cronlock.WithCatchUp(time.Hour)}, false},
		{"paused", []time.Time{ago(5 * time.Hour)}, true, []cronlock.Option{cronlock.WithCatchUp(time.Hour)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			old := &replica{cron: cron.New(), locks: newClient(t, rdb)}
			old.add(t, schedule, idle, cronlock.WithCatchUp(6*time.Hour), cronlock.WithStartDeadline(6*time.Hour))
			for _, tick := range test.before {
				old.fire(tick)
			}
			old.expect(t, len(test.before))
			if len(test.before) > 0 { // out of turn: no tick
				if err := cronlock.Job(old.locks, "job").Run(t.Context(), old.cron); err != nil {
					t.Fatal(err)
				}
			}
			if test.paused {
				if err := cronlock.Register(t.Context(), old.cron, "job"); err != nil {
					t.Fatal(err)
				}
				if err := cronlock.Job(old.locks, "job").Pause(t.Context(), "anna"); err != nil {
					t.Fatal(err)
				}
			}
			caught := 0
			for range 2 { // the second finds nothing to do
				r := &replica{cron: cron.New(), locks: newClient(t, rdb)}
				r.add(t, schedule, idle, test.opts...)
				begin(t, r)
				for _, run := range r.runs() {
					if caught++; !run.Tick.Equal(latest) {
						t.Errorf("caught up with %v, want %v", run.Tick, latest)
					}
				}
			}
			if want := map[bool]int{true: 1}[test.want]; caught != want {
				t.Errorf("caught up %d times, want %d", caught, want)
			}
		})
	}
}

// begin lets the scheduler begin, and waits until what the job starts then has ended.
func begin(t *testing.T, r *replica) {
	t.Helper()
	cronlock.Begin(r.cron)
	<-r.cron.Stop().Done()
}

// TestCatchUpIsRecovered: a panic in a tick that is caught up meets the wrappers of the cron, like any other.
func TestCatchUpIsRecovered(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	now := time.Now().Truncate(time.Second)
	ticks := at(now.Add(-2*time.Minute), now.Add(-time.Minute), now.Add(time.Hour))
	old := &replica{cron: cron.New(), locks: newClient(t, rdb)}
	old.add(t, ticks, idle, cronlock.WithStartDeadline(time.Hour))
	old.fire(now.Add(-2 * time.Minute))
	r := &replica{cron: cron.New(cron.WithChain(cron.Recover(cron.DiscardLogger))), locks: newClient(t, rdb)}
	r.add(t, ticks, func(context.Context) error { panic("no paper") }, cronlock.WithCatchUp(time.Hour))
	r.cron.Start()
	testkit.Eventually(t, patience, "the tick is caught up", func() bool { return len(r.runs()) > 0 })
	<-r.cron.Stop().Done()
	expectOutcomes(t, r.locks, cronlock.Panicked, cronlock.Success)
}

// TestCatchUpAfterOutage: a tick that could not be claimed until its start deadline is run when Redis is back.
func TestCatchUpAfterOutage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.AOF())
	tick := time.Now().Truncate(time.Second)
	skipped := make(chan error, 100)
	seed := &replica{cron: cron.New(), locks: newClient(t, server.Client())}
	seed.add(t, after(time.Hour), idle, cronlock.WithStartDeadline(2*time.Hour))
	seed.fire(tick.Add(-time.Hour))
	seed.expect(t, 1)

	server.Kill()
	hooks := core.WithHooks(core.Hooks{NotRun: func(_ context.Context, not core.NotRun) { skipped <- not.Err }})
	short := &replica{cron: cron.New(), locks: newClient(t, server.Client(), hooks)}
	short.add(t, at(tick.Add(-time.Hour), tick, tick.Add(time.Hour)), idle, cronlock.WithCatchUp(3*time.Hour),
		cronlock.WithStartDeadline(50*time.Millisecond))
	wait := short.start(tick)
	if err := receive(t, skipped, "the skipped tick"); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("skipped with %v", err)
	}
	server.Restart()
	wait()
	short.expect(t, 1, cronlock.Unavailable)
	if runs := short.runs(); len(runs) == 1 && !runs[0].Tick.Equal(tick) {
		t.Errorf("caught up with %v, want %v", runs[0].Tick, tick)
	}
}

// TestCatchUpOfALateTick: a tick that is too late, as after a suspend of the host, runs all the same within the catch-up window.
func TestCatchUpOfALateTick(t *testing.T) {
	t.Parallel()
	late := time.Now().Truncate(time.Second).Add(-20 * time.Minute)
	for runs, opts := range [][]cronlock.Option{nil, {cronlock.WithCatchUp(time.Hour)}} {
		r := &replica{cron: cron.New(), locks: newClient(t, testkit.Start(t).Client())}
		seed := &replica{cron: cron.New(), locks: r.locks}
		ticks := at(late.Add(-time.Hour), late, late.Add(time.Hour))
		seed.add(t, ticks, idle, cronlock.WithStartDeadline(3*time.Hour))
		seed.fire(late.Add(-time.Hour))
		seed.expect(t, 1)
		r.add(t, ticks, idle, opts...)
		r.fire(late)
		r.expect(t, 1+runs, cronlock.Late)
	}
}

// TestCatchUpInZone: a spec without a zone is read in the cron's zone, also for the ticks of the past.
func TestCatchUpInZone(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	zone := time.FixedZone("half past", 5*3600+1800)
	want := time.Now().In(zone).Truncate(time.Minute).Add(-10 * time.Minute)
	seed := newReplica(t, newClient(t, rdb), idle, cronlock.WithStartDeadline(48*time.Hour))
	seed.fire(want.Add(-24 * time.Hour))
	seed.expect(t, 1)

	locks := newClient(t, rdb)
	r := &replica{cron: cron.New(cron.WithLocation(zone)), locks: locks, reports: reportsOf(locks)}
	spec := fmt.Sprintf("%d %d * * *", want.Minute(), want.Hour())
	_, err := cronlock.AddFunc(r.cron, r.locks, spec, "job", idle, cronlock.WithCatchUp(30*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	begin(t, r)
	if runs := r.runs(); len(runs) != 1 || !runs[0].Tick.Equal(want) {
		t.Errorf("caught up with %+v, want %v", runs, want)
	}
}

// TestCatchUpAfterAMove: a past tick of a spec that a deployment has moved counts as missed, unless none lies between the
// last tick that was started and now.
func TestCatchUpAfterAMove(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	started, day := now.Add(-23*time.Hour), 24*time.Hour
	for name, test := range map[string]struct {
		tick time.Time // of today, by the new spec
		want int
	}{
		"to a time that has passed":  {now.Add(-10 * time.Minute), 1},
		"to a time before the start": {started.Add(-time.Minute + day), 0},
		"to a time to come":          {now.Add(10 * time.Minute), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			old := &replica{cron: cron.New(), locks: newClient(t, rdb)}
			old.add(t, at(started, started.Add(day)), idle, cronlock.WithCatchUp(day), cronlock.WithStartDeadline(day))
			old.fire(started)
			old.expect(t, 1)
			moved := &replica{cron: cron.New(), locks: newClient(t, rdb)}
			moved.add(t, at(test.tick.Add(-day), test.tick, test.tick.Add(day)), idle, cronlock.WithCatchUp(day))
			begin(t, moved)
			if runs := moved.runs(); len(runs) != test.want || test.want == 1 && !runs[0].Tick.Equal(test.tick) {
				t.Errorf("%d runs: %+v, want %d", len(runs), runs, test.want)
			}
		})
	}
}

// TestRemovedAndAdded: a job that is removed from a running cron and added again at a tick runs that tick with
// WithCatchUp.
func TestRemovedAndAdded(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	ticks := at(now.Add(-time.Hour), now, now.Add(time.Hour))
	opts := []cronlock.Option{cronlock.WithCatchUp(2 * time.Hour), cronlock.WithStartDeadline(2 * time.Hour)}
	r := &replica{cron: cron.New(cron.WithLocation(time.UTC)), locks: newClient(t, testkit.Start(t).Client())}
	r.add(t, ticks, idle, opts...)
	r.fire(now.Add(-time.Hour))
	r.expect(t, 1)
	r.cron.Start()
	defer r.cron.Stop()
	for _, entry := range r.cron.Entries() {
		r.cron.Remove(entry.ID)
	}
	r.add(t, ticks, idle, opts...)
	testkit.Eventually(t, patience, "the tick runs", func() bool { return len(r.runs()) == 2 })
	if ends := r.runs(); !ends[1].Tick.Equal(now) {
		t.Errorf("runs %+v, want the tick at %v last", ends, now)
	}
}
