package cronlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestOncePerTick: however many replicas come for a tick, together or one after the other, it starts on one of them.
func TestOncePerTick(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	replicas := make([]*replica, 5)
	for i := range replicas {
		replicas[i] = newReplica(t, newClient(t, server.Client()), idle)
	}
	tick := time.Now().Truncate(time.Second)
	var all sync.WaitGroup
	for _, r := range replicas {
		all.Go(func() { r.fire(tick) })
	}
	all.Wait()
	for _, r := range replicas { // the job has ended long ago on the others
		r.fire(tick)
	}
	runs, taken := 0, 0
	for _, r := range replicas {
		runs += len(r.runs())
		for _, reason := range r.reasons() {
			if reason != cronlock.Taken {
				t.Errorf("skipped for %q", reason)
			}
			taken++
		}
	}
	if runs != 1 || taken != 9 {
		t.Errorf("%d runs and %d refusals, want 1 and 9", runs, taken)
	}
}

// TestTicksAreApart: the next tick runs, and a spec that has a tick in common with the one before does not run it
// again.
func TestTicksAreApart(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	before := newReplica(t, newClient(t, server.Client()), idle)
	next := &replica{cron: cron.New(), locks: newClient(t, server.Client())}
	next.add(t, after(15*time.Minute), idle)
	tick := time.Now().Truncate(time.Second)
	before.fire(tick)
	next.fire(tick.In(time.FixedZone("elsewhere", 3600)))
	next.fire(tick.Add(time.Second))
	before.expect(t, 1)
	next.expect(t, 1, cronlock.Taken)
}

// each makes a schedule of short periods, for real schedulers.
func each(period time.Duration) schedule {
	return func(t time.Time) time.Time { return t.Truncate(period).Add(period) }
}

// TestSchedulers: the crons of two replicas, begun at different times and stopped now and then, start each tick once.
func TestSchedulers(t *testing.T) {
	t.Parallel()
	const period, ticks = 20 * time.Millisecond, 50
	server := testkit.Start(t)
	var mu sync.Mutex
	started := map[int64]int{}
	enough := make(chan struct{})
	count := func(ctx context.Context) error {
		run, _ := cronlock.RunFrom(ctx)
		mu.Lock()
		defer mu.Unlock()
		if started[run.Tick.UnixNano()]++; len(started) == ticks {
			close(enough)
		}
		return nil
	}
	var crons []*cron.Cron
	for range 2 {
		c := cron.New()
		c.Start()
		_, err := cronlock.AddSchedule(c, newClient(t, server.Client()), each(period), "job", count,
			cronlock.AllowOverlap())
		if err != nil {
			t.Fatal(err)
		}
		crons = append(crons, c)
	}
	stopping := time.NewTicker(7 * period)
	defer stopping.Stop()
	for i, going := 0, true; going; i++ {
		select {
		case <-enough:
			going = false
		case <-stopping.C:
			<-crons[i%2].Stop().Done()
			crons[i%2].Start()
		case <-time.After(patience):
			t.Fatal("too few ticks")
		}
	}
	for _, c := range crons {
		<-c.Stop().Done()
	}
	for tick, n := range started {
		if n != 1 || tick%int64(period) != 0 {
			t.Errorf("tick %v started %d times", time.Unix(0, tick), n)
		}
	}
}

// TestEveryIsTheSameEverywhere: replicas that begin at different times have the same ticks of "@every".
func TestEveryIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	var nexts []time.Time
	from := time.Now().Truncate(5 * time.Second)
	for _, late := range []time.Duration{0, 1300 * time.Millisecond, 4999 * time.Millisecond} {
		c := cron.New()
		id, err := cronlock.AddFunc(c, locks, "@every 5s", "job", idle)
		if err != nil {
			t.Fatal(err)
		}
		nexts = append(nexts, c.Entry(id).Schedule.Next(from.Add(late)))
	}
	if want := from.Add(5 * time.Second); !slices.ContainsFunc(nexts, want.Equal) ||
		!nexts[0].Equal(nexts[1]) || !nexts[1].Equal(nexts[2]) {
		t.Errorf("the next ticks are %v, want %v", nexts, want)
	}
}

// TestManyJobs: thousands of jobs can be added to a cron that runs, and all start.
func TestManyJobs(t *testing.T) {
	t.Parallel()
	jobs := testkit.Rounds(150, 500)
	locks := newClient(t, testkit.Start(t).Client())
	c := cron.New()
	c.Start()
	var ran atomic.Int64
	tick := time.Now().Truncate(time.Second)
	for i := range jobs {
		_, err := cronlock.AddFunc(c, locks, "0 3 * * *", "job"+strconv.Itoa(i), func(context.Context) error {
			ran.Add(1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, patience, "only the jobs are left", func() bool { return len(c.Entries()) == jobs })
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() { cronlock.Fire(c, "job"+strconv.Itoa(i), tick) })
	}
	all.Wait()
	<-c.Stop().Done()
	if ran.Load() != int64(jobs) {
		t.Errorf("%d of %d ran", ran.Load(), jobs)
	}
}

// TestContextOfRun: what the function is told.
func TestContextOfRun(t *testing.T) {
	t.Parallel()
	type key struct{}
	locks := newClient(t, testkit.Start(t).Client(), core.WithInstance("here"))
	tick := time.Now().Truncate(time.Second)
	var run cronlock.Run
	var token int64
	r := newReplica(t, locks, func(ctx context.Context) error {
		run, _ = cronlock.RunFrom(ctx)
		token, _ = core.TokenFrom(ctx)
		if ctx.Value(key{}) != "of the service" || ctx.Err() != nil {
			t.Errorf("value %v, error %v", ctx.Value(key{}), ctx.Err())
		}
		return nil
	}, cronlock.WithContext(context.WithValue(t.Context(), key{}, "of the service")))
	r.fire(tick)
	if run.Job != "job" || !run.Tick.Equal(tick) || run.Replica != "here" || run.Attempt != 1 ||
		run.Outcome != cronlock.Running || run.Token == 0 || run.Token != token ||
		time.Since(run.Started).Abs() > time.Minute {
		t.Errorf("run %+v with token %d", run, token)
	}
	if _, ok := cronlock.RunFrom(t.Context()); ok {
		t.Error("there is a run outside of runs")
	}
}

// TestDispositionOfARun: what the function declares about its run outweighs how it ends.
func TestDispositionOfARun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		say   func(context.Context) error
		fails error
		want  cronlock.Outcome // of the record
		again int              // runs of another replica
	}{
		"complete": {core.Complete, errors.New("failure"), cronlock.Failed, 0},
		"release":  {core.Release, nil, cronlock.Success, 1},
		"hold":     {func(ctx context.Context) error { return core.Hold(ctx, "no answer") }, nil, cronlock.Unknown, 0},
	} {
		rdb := testkit.Start(t).Client()
		first := newReplica(t, newClient(t, rdb), func(ctx context.Context) error {
			a, ok := core.AttemptFrom(ctx)
			if !ok || a.Number() != 1 || core.KeyHash(ctx) == "" {
				t.Errorf("%s: attempt %v, hash %q", name, ok, core.KeyHash(ctx))
			}
			if err := test.say(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return test.fails
		}, cronlock.WithFailover(2))
		tick := time.Now().Truncate(time.Second)
		first.fire(tick)
		other := newReplica(t, newClient(t, rdb), idle, cronlock.WithFailover(2))
		other.fire(tick)
		if again := len(other.runs()); again != test.again {
			t.Errorf("%s: %d runs of another replica", name, again)
		}
		expectOutcomes(t, other.locks, test.want)
	}
}

// TestPanics: however a function or a hook ends, that is recorded, a panic continues to the wrappers of the cron, and the
// next tick finds the job free.
func TestPanics(t *testing.T) {
	t.Parallel()
	type hooks = core.Hooks
	for _, test := range []struct {
		name  string
		fn    func(context.Context) error
		hooks hooks
		want  cronlock.Outcome
	}{
		{"function", func(context.Context) error { panic("no paper") }, hooks{}, cronlock.Panicked},
		{"Goexit", func(context.Context) error { runtime.Goexit(); return nil }, hooks{}, cronlock.Panicked},
		{
			"RunStart", idle,
			hooks{RunStart: func(context.Context, core.RunStart) context.Context { panic("in a hook") }},
			cronlock.Panicked,
		},
		{
			"RunEnd", idle,
			hooks{RunEnd: func(context.Context, core.RunEnd) { panic("in a hook") }},
			cronlock.Success,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks := newClient(t, rdb, core.WithHooks(test.hooks))
			var panics counter
			bad := &replica{cron: cron.New(cron.WithChain(cron.Recover(&panics))), locks: locks}
			bad.add(t, after(time.Hour), test.fn)
			tick := time.Now().Truncate(time.Second)
			bad.start(tick)()
			expectOutcomes(t, locks, test.want)
			if want := map[bool]int{true: 0, false: 1}[test.name == "Goexit"]; panics.count() != want {
				t.Errorf("%d panics reached the wrappers, want %d", panics.count(), want)
			}
			good := newReplica(t, newClient(t, rdb), idle)
			good.fire(tick)
			good.fire(tick.Add(time.Second))
			good.expect(t, 1, cronlock.Taken)
		})
	}
}

// TestSkippedPanics: a hook that panics about a skipped tick leaves nothing behind.
func TestSkippedPanics(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	long := newBlocking()
	a := newReplica(t, locks, long.run)
	b := &replica{
		cron:  cron.New(cron.WithChain(cron.Recover(cron.DiscardLogger))),
		locks: newClient(t, rdb, core.WithHooks(core.Hooks{NotRun: func(context.Context, core.NotRun) { panic("in a hook") }})),
	}
	b.add(t, after(time.Hour), idle)
	tick := time.Now().Truncate(time.Second)
	wait := a.start(tick)
	receive(t, long.running, "the run")
	b.fire(tick)
	b.fire(tick.Add(time.Second))
	expectOutcomes(t, locks, cronlock.Skipped, cronlock.Running)
	close(long.release)
	wait()
}

// counter is a logger that counts errors.
type counter struct {
	mu sync.Mutex
	n  int
}

func (*counter) Info(string, ...any) {}

func (c *counter) Error(error, string, ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// TestListedBeforeStart: a page that lists the next ticks before the scheduler starts makes none of the ticks until then run.
func TestListedBeforeStart(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	c := cron.New(cron.WithSeconds())
	ticks := make(chan time.Time, 100)
	_, err := cronlock.AddFunc(c, locks, "* * * * * *", "job", func(ctx context.Context) error {
		r, _ := cronlock.RunFrom(ctx)
		select {
		case ticks <- r.Tick:
		default:
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := time.Now()
	if next := c.Entries()[0].Schedule.Next(listed); next.Sub(listed) > time.Second {
		t.Errorf("the next tick is %v", next)
	}
	<-time.After(3 * time.Second) // ticks come and go
	start := time.Now()
	c.Start()
	defer c.Stop()
	if first := <-ticks; first.Before(start.Add(-time.Second)) { // less late than a busy machine may be
		t.Errorf("tick %v was run, the scheduler started at %v", first, start)
	}
}
