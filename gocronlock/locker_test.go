package gocronlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func idle(context.Context) error { return nil }

var named = gocron.WithName("report")

// TestLocker: with every strategy, jobs of four schedulers run one at a time, or n with a Limit.
func TestLocker(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	for name, test := range map[string]struct {
		strategy func(*core.Client) core.Strategy
		most     int32
	}{
		"Mutex": {func(c *core.Client) core.Strategy { return c.Mutex }, 1},
		"Fair":  {func(c *core.Client) core.Strategy { return c.Fair }, 1},
		"Write": {func(c *core.Client) core.Strategy { return c.Write }, 1},
		"Limit": {func(c *core.Client) core.Strategy { return c.Limit(2) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var busy, most, runs atomic.Int32
			for range 4 {
				locks := newClient(t, server.Client())
				locker := gocronlock.Locker(test.strategy(locks), core.WithMinHold(0))
				s := newScheduler(t, gocron.WithDistributedLocker(locker))
				_, err := s.NewJob(gocron.DurationJob(5*time.Millisecond), gocron.NewTask(locker.Func(func(ctx context.Context) error {
					if _, ok := core.TokenFrom(ctx); !ok {
						t.Error("no token in the context")
					}
					now := busy.Add(1)
					defer busy.Add(-1)
					for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
					}
					time.Sleep(5 * time.Millisecond) // others come meanwhile
					runs.Add(1)
					return nil
				})), gocron.WithName(name))
				if err != nil {
					t.Fatal(err)
				}
			}
			testkit.Eventually(t, patience, "forty runs", func() bool { return runs.Load() > 40 && most.Load() >= test.most })
			if most.Load() != test.most {
				t.Errorf("%d at a time, want %d", most.Load(), test.most)
			}
		})
	}
}

// TestLockerMinHold: the clock of one replica is behind the clock of another. A short job runs on both, unless the minimum hold
// covers that. The default covers a moment.
func TestLockerMinHold(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	unlocked := make(chan struct{}, 1000)
	hooks := core.WithHooks(core.Hooks{ReleaseEnd: func(context.Context, core.ReleaseEnd) { unlocked <- struct{}{} }})
	replica := func(name string, opts ...core.LockOption) (gocron.Job, events) {
		told := newEvents()
		locker := gocronlock.Locker(newClient(t, server.Client(), hooks).Mutex, opts...)
		s := newScheduler(t, gocron.WithDistributedLocker(locker))
		return addJob(t, s, idle, gocron.WithName(name), told.listeners()), told
	}
	for name, test := range map[string]struct {
		minHold time.Duration
		then    string
	}{"none": {0, "ran"}, "an hour": {time.Hour, "not acquired"}} {
		first, told := replica(name, core.WithMinHold(test.minHold))
		second, toldToo := replica(name, core.WithMinHold(test.minHold))
		runNow(t, first)
		told.expect(t, "ran")
		receive(t, unlocked, "the unlock")
		runNow(t, second)
		toldToo.expect(t, test.then)
		if test.then == "ran" {
			receive(t, unlocked, "the unlock")
		}
	}
	first, told := replica("default")
	second, toldToo := replica("default")
	testkit.Eventually(t, patience, "the default to cover a moment", func() bool {
		runNow(t, first)
		if receive(t, told, "the first run") == "ran" {
			receive(t, unlocked, "the unlock")
		}
		runNow(t, second)
		if receive(t, toldToo, "the second run") == "ran" {
			receive(t, unlocked, "the unlock")
			return false
		}
		return true
	})
}

// TestLockerLongJob: the lease of a job that outlasts its TTL is renewed, and other replicas skip their runs.
func TestLockerLongJob(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	long, told, toldToo := newBlocking(), newEvents(), newEvents()
	var logged record
	here := gocronlock.Locker(newClient(t, server.Client()).Mutex, core.WithTTL(3*time.Second))
	there := gocronlock.Locker(newClient(t, server.Client(), logged.logger()).Mutex)
	first := addJob(t, newScheduler(t, gocron.WithDistributedLocker(here)), here.Func(long.run), named, told.listeners())
	second := addJob(t, newScheduler(t), idle, named, toldToo.listeners(), gocron.WithDistributedJobLocker(there))
	runNow(t, first)
	ctx := receive(t, long.running, "the run")
	for began := time.Now(); time.Since(began) < 5*time.Second; {
		runNow(t, second)
		toldToo.expect(t, "locked", "not acquired")
	}
	if ctx.Err() != nil {
		t.Errorf("the context has ended: %v", context.Cause(ctx))
	}
	long.release <- nil
	told.expect(t, "ran")
	if logged.count("level=WARN msg=\"holdfast: gocronlock") > 0 || logged.count("run skipped") == 0 {
		t.Error("a skipped run is a warning, or not logged at all")
	}
}

// TestLockerLoss forces the lock of a run free: its context ends, gocron gets the error, and the log names the job.
func TestLockerLoss(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	long, told := newBlocking(), newEvents()
	var logged record
	locker := gocronlock.Locker(newClient(t, server.Client(), logged.logger()).Mutex, core.WithTTL(6*time.Second))
	job := addJob(t, newScheduler(t, gocron.WithDistributedLocker(locker)), locker.Func(long.run), named, told.listeners())
	runNow(t, job)
	ctx := receive(t, long.running, "the run")
	forceUnlock(t, server.Client(), "gocron:report")
	receive(t, ctx.Done(), "the end of the lease")
	if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLeaseLost) {
		t.Errorf("the context ends with %v", cause)
	}
	long.release <- nil
	told.expect(t, "failed", "lease lost")
	logged.expect(t, `the work has lost its lease while it ran" place=cron label=report`)
}

// TestLockerWithoutRedis: no job runs, which is reported, and jobs run again when Redis is back. A lock that is not released
// meanwhile is reported too.
func TestLockerWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	long, told := newBlocking(), newEvents()
	var logged record
	locker := gocronlock.Locker(newClient(t, server.Client(), logged.logger()).Mutex, core.WithTTL(time.Minute), core.WithMinHold(0))
	s := newScheduler(t, gocron.WithDistributedLocker(locker))
	job := addJob(t, s, locker.Func(long.run), named, told.listeners())
	runNow(t, job)
	receive(t, long.running, "the run")
	server.Pause()
	long.release <- nil
	told.expect(t, "ran")
	logged.expect(t, "the end of the work could not be recorded")
	runNow(t, job)
	told.expect(t, "locked", "no answer from Redis")
	logged.expect(t, `job does not run" job=report`)
	server.Resume()
	testkit.Eventually(t, patience, "a run", func() bool {
		runNow(t, job)
		select {
		case <-long.running:
			return true
		case <-told:
			return false
		}
	})
	long.release <- nil
}

// TestLockerRefuses what cannot be meant, as an error or a panic.
func TestLockerRefuses(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	if _, err := gocronlock.NewLocker(nil); err == nil || !strings.Contains(err.Error(), "strategy is nil") {
		t.Errorf("without a strategy: %v", err)
	}
	if _, err := gocronlock.NewLocker(locks.Mutex, core.WithMinHold(-1)); !errors.Is(err, core.ErrInvalidOption) {
		t.Errorf("with a wrong option: %v", err)
	}
	if _, err := gocronlock.Locker(locks.Mutex).Lock(t.Context(), "unbalanced}"); !errors.Is(err, core.ErrInvalidName) {
		t.Errorf("with a wrong name: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Locker does not panic")
		}
	}()
	gocronlock.Locker(nil)
}

type printer struct{ done chan string }

func (p *printer) Print() { p.done <- "printed" }

func sync1() {}

// TestUnnamed: jobs that only gocron has named do not run if it is the name of an anonymous function, and return an error. Named
// functions and methods are taken.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	locker := gocronlock.Locker(locks.Mutex)
	printed := &printer{make(chan string, 1)}
	func() {
		for _, fn := range []any{
			locker.Func(idle), gocronlock.Elector(locks.Election("e")).Func(idle), func() { t.Error("it runs") },
			func() any { return func() { t.Error("it runs") } }(),
		} {
			told := newEvents()
			runNow(t, addJob(t, newScheduler(t, gocron.WithDistributedLocker(locker)), fn, told.listeners()))
			told.expect(t, "locked", "use gocron.WithName")
		}
	}()
	for _, fn := range []any{printed.Print, sync1} {
		told := newEvents()
		runNow(t, addJob(t, newScheduler(t, gocron.WithDistributedLocker(locker)), fn, told.listeners()))
		told.expect(t, "ran")
	}
	receive(t, printed.done, "the method")
	for name, want := range map[string]error{
		"report": nil, "main.report": nil, "billing/func1": nil, "main.(*Shop).Report-fm": nil, "main.run[...]": nil,
		"main.main.func1": gocronlock.ErrUnnamed, "main.main.func2.1": gocronlock.ErrUnnamed, "main.init.func1.2.3": gocronlock.ErrUnnamed,
		"main.main.gowrap1": gocronlock.ErrUnnamed, "main.main.func1-range1": gocronlock.ErrUnnamed,
	} {
		lock, err := locker.Lock(t.Context(), name)
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
		if err == nil {
			_ = lock.Unlock(t.Context())
		}
	}
}

// TestSharedName: two jobs of one name in one process exclude each other, which is logged once, and only while both exist.
func TestSharedName(t *testing.T) {
	t.Parallel()
	const line = "two jobs have one name"
	server := testkit.Start(t)
	var logged record
	locker := gocronlock.Locker(newClient(t, server.Client(), logged.logger()).Mutex, core.WithMinHold(0))
	s := newScheduler(t, gocron.WithDistributedLocker(locker))
	told := newEvents()
	first := addJob(t, s, func(context.Context) error { return nil }, named, told.listeners())
	run := func(job gocron.Job) {
		testkit.Eventually(t, patience, "a run", func() bool {
			runNow(t, job)
			return receive(t, told, "an event") == "ran"
		})
	}
	run(first)
	if err := s.RemoveJob(first.ID()); err != nil {
		t.Fatal(err)
	}
	second := addJob(t, s, idle, named, told.listeners())
	run(second)
	if n := logged.count(line); n != 0 {
		t.Errorf("%d warnings of a job that was replaced", n)
	}
	third := addJob(t, s, idle, named, told.listeners())
	for range 3 {
		run(third)
		run(second)
	}
	if n := logged.count(line); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
}

// TestProcesses lets the schedulers of three processes run one job, and kills a process at work twice. No two runs overlap,
// tokens never go back, and the processes that are left continue.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"elect", "lock"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			runs := make(chan run, 100_000)
			var kills [3]func()
			for i := range kills {
				kills[i] = startWorker(t, server, what, i, runs)
			}
			var all []run
			dead := make(map[int]bool)
			for range 2 {
				for since := 0; since < 20; since++ {
					all = append(all, receive(t, runs, "a run"))
				}
				victim := all[len(all)-1].worker
				kills[victim]()
				dead[victim] = true
				for survivor := false; !survivor; {
					next := receive(t, runs, "a run of another process")
					all = append(all, next)
					survivor = !dead[next.worker]
				}
			}
			checkRuns(t, all, what == "lock")
		})
	}
}

// checkRuns finds runs that overlap, and tokens that go back. With a lock, each run has a token of its own.
func checkRuns(t *testing.T, all []run, own bool) {
	t.Helper()
	slices.SortFunc(all, func(a, b run) int { return int(a.From - b.From) })
	for i := 1; i < len(all); i++ {
		before, after := all[i-1], all[i]
		switch {
		case before.To > after.From:
			t.Errorf("%+v overlaps %+v", before, after)
		case after.Token < before.Token, own && after.Token == before.Token, !own && after.Token == before.Token && after.worker != before.worker:
			t.Errorf("%+v came before %+v", before, after)
		}
	}
}
