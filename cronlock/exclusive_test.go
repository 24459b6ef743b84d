package cronlock_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// contextJob is a job that can be told to stop.
type contextJob func(context.Context) error

func (contextJob) Run()                                   { panic("RunContext should be called") }
func (f contextJob) RunContext(ctx context.Context) error { return f(ctx) }

// skipsOf returns why ticks of a job were skipped.
func skipsOf(locks *core.Client, job string) (reasons []string) {
	r := reportsOf(locks)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, skip := range r.skips {
		if skip.Label == job {
			reasons = append(reasons, skip.Reason)
		}
	}
	return reasons
}

func strategies(locks *core.Client) map[string]core.Strategy {
	return map[string]core.Strategy{
		"Mutex": locks.Mutex, "Fair": locks.Fair, "Write": locks.Write, "FairWrite": locks.FairWrite,
	}
}

// TestExclusive: with every strategy, a second run is skipped, or waits for the first.
func TestExclusive(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	here, there := newClient(t, server.Client()), newClient(t, server.Client())
	for name, strategy := range strategies(here) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			long := newBlocking()
			first := cronlock.Exclusive(strategy, name)(contextJob(long.run))
			ran := 0
			count := cron.FuncJob(func() { ran++ })
			other := strategies(there)[name]
			second := cronlock.Exclusive(other, name)(count)
			waits := cronlock.Exclusive(other, name, core.WithWait(time.Hour))(count)

			var running sync.WaitGroup
			running.Go(first.Run)
			ctx := receive(t, long.running, "the first run")
			if _, ok := core.TokenFrom(ctx); !ok {
				t.Error("no token in the context")
			}
			second.Run()
			if skips := skipsOf(there, name); ran != 0 || !slices.Equal(skips, []string{cronlock.Overlapping}) {
				t.Errorf("ran %d times, skipped for %q", ran, skips)
			}
			running.Go(waits.Run)
			close(long.release)
			running.Wait()
			second.Run()
			if skips := skipsOf(there, name); ran != 2 || len(skips) != 1 {
				t.Errorf("afterwards ran %d times, skipped for %q", ran, skips)
			}
		})
	}
}

// TestExclusiveWithWrappers: around and inside of robfig's, and around a job that runs once per tick.
func TestExclusiveWithWrappers(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	for name, chain := range map[string]func(cron.JobWrapper) cron.Chain{
		"Recover outside": func(w cron.JobWrapper) cron.Chain { return cron.NewChain(cron.Recover(cron.DiscardLogger), w) },
		"Recover inside":  func(w cron.JobWrapper) cron.Chain { return cron.NewChain(w, cron.Recover(cron.DiscardLogger)) },
		"Skip inside": func(w cron.JobWrapper) cron.Chain {
			return cron.NewChain(cron.Recover(cron.DiscardLogger), w, cron.SkipIfStillRunning(cron.DiscardLogger))
		},
		"Delay outside": func(w cron.JobWrapper) cron.Chain {
			return cron.NewChain(cron.Recover(cron.DiscardLogger), cron.DelayIfStillRunning(cron.DiscardLogger), w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var busy, most, ran atomic.Int32
			body := func() {
				most.Store(max(most.Load(), busy.Add(1)))
				defer busy.Add(-1)
				if ran.Add(1) == 2 {
					panic("no paper")
				}
			}
			job := chain(cronlock.Exclusive(locks.Mutex, name, core.WithWait(time.Hour))).
				Then(cron.FuncJob(body))
			var all sync.WaitGroup
			for range 8 {
				all.Go(job.Run)
			}
			all.Wait()
			least := int32(8)
			if name == "Skip inside" {
				least = 2 // robfig's wrapper loses its token in a panic, and skips for ever
			}
			if most.Load() != 1 || ran.Load() < least {
				t.Errorf("%d at a time, %d ran; want 1, %d", most.Load(), ran.Load(), least)
			}
		})
	}
}

// TestTicksWithWrappers: once per tick holds in every chain.
func TestTicksWithWrappers(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	for i, wrapper := range []cron.JobWrapper{
		cron.Recover(cron.DiscardLogger), cron.SkipIfStillRunning(cron.DiscardLogger),
		cron.DelayIfStillRunning(cron.DiscardLogger),
		cronlock.Exclusive(newClient(t, server.Client()).Mutex, "all", core.WithWait(time.Hour)),
	} {
		runs := 0
		tick := time.Now().Truncate(time.Second)
		for range 3 {
			r := &replica{
				cron:  cron.New(cron.WithChain(wrapper)),
				locks: newClient(t, server.Client(), core.WithPrefix(string(rune('a'+i)))),
			}
			r.add(t, after(time.Hour), idle)
			r.fire(tick)
			r.fire(tick)
			runs += len(r.runs())
		}
		if runs != 1 {
			t.Errorf("wrapper %d: %d runs, want 1", i, runs)
		}
	}
}

// TestExclusiveWithoutRedis: skipped, and told; or run if asked for. After the end of the jobs' context neither.
func TestExclusiveWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	server.Kill()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name string
		opts []cronlock.Option
		want string
	}{
		{"fail closed", nil, "unavailable"},
		{"fail open", []cronlock.Option{cronlock.FailOpen()}, "ran"},
		{"stopped", []cronlock.Option{cronlock.FailOpen(), cronlock.WithContext(ended)}, "stopped"},
	} {
		got, locks := "", newClient(t, server.Client())
		cronlock.Exclusive(locks.Mutex, "job", test.opts...)(cron.FuncJob(func() { got += "ran" })).Run()
		if got += strings.Join(skipsOf(locks, "job"), " "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestExclusiveRefuses what cannot be meant, as an error or a panic.
func TestExclusiveRefuses(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	for name, build := range map[string]func() (cron.JobWrapper, error){
		"strategy": func() (cron.JobWrapper, error) { return cronlock.NewExclusive(nil, "job") },
		"no name":  func() (cron.JobWrapper, error) { return cronlock.NewExclusive(locks.Mutex, "") },
		"n = 0":    func() (cron.JobWrapper, error) { return cronlock.NewExclusive(locks.Limit(0), "job") },
		"AllowOverlap": func() (cron.JobWrapper, error) {
			return cronlock.NewExclusive(locks.Mutex, "job", cronlock.AllowOverlap())
		},
		"WithLeader": func() (cron.JobWrapper, error) {
			return cronlock.NewExclusive(locks.Mutex, "job", cronlock.WithLeader(locks.Election("name")))
		},
		"WithWait": func() (cron.JobWrapper, error) {
			return cronlock.NewExclusive(locks.Mutex, "job", core.WithWait(-1))
		},
	} {
		if _, err := build(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Exclusive does not panic")
		}
	}()
	cronlock.Exclusive(nil, "job")
}

// TestExclusiveLimit: of four replicas whose schedules have the same job each second, two run it at a time, and the
// other ones skip their ticks.
func TestExclusiveLimit(t *testing.T) {
	t.Parallel()
	const n, replicas = 2, 4
	server := testkit.Start(t)
	var mu sync.Mutex
	running, most, begun, skipped := 0, 0, 0, 0
	release := make(chan struct{})
	job := cron.FuncJob(func() {
		mu.Lock()
		running++
		begun++
		most = max(most, running)
		mu.Unlock()
		<-release
		mu.Lock()
		defer mu.Unlock()
		running--
	})
	hooks := core.WithHooks(core.Hooks{NotRun: func(_ context.Context, not core.NotRun) {
		mu.Lock()
		defer mu.Unlock()
		if not.Reason == cronlock.Overlapping {
			skipped++
		}
	}})
	for range replicas {
		limit := newClient(t, server.Client(), hooks).Limit(n)
		c := cron.New(cron.WithSeconds())
		wrapper := cronlock.Exclusive(limit, "report")
		if _, err := c.AddJob("* * * * * *", wrapper(job)); err != nil {
			t.Fatal(err)
		}
		c.Start()
		t.Cleanup(func() { <-c.Stop().Done() })
	}
	testkit.Eventually(t, time.Minute, "n runs, and others skipped", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return running == n && skipped >= 2*replicas
	})
	close(release)
	testkit.Eventually(t, time.Minute, "the ticks after that to run", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return begun > n+replicas
	})
	mu.Lock()
	defer mu.Unlock()
	if most != n {
		t.Errorf("%d at a time, want %d", most, n)
	}
}

// TestExclusiveLimitWaits: a run beyond the limit waits for one of the others if it may.
func TestExclusiveLimitWaits(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	here, there := newClient(t, server.Client()), newClient(t, server.Client())
	options := []cronlock.Option{core.WithWait(time.Hour)}
	first, second := newBlocking(), newBlocking()
	var running sync.WaitGroup
	for _, long := range []*blocking{first, second} {
		wrapped := cronlock.Exclusive(here.Limit(2), "report", options...)(contextJob(long.run))
		running.Go(wrapped.Run)
		if _, ok := core.TokenFrom(receive(t, long.running, "a run")); !ok {
			t.Error("no token in the context")
		}
	}
	ran := make(chan struct{})
	third := cronlock.Exclusive(there.Limit(2), "report", options...)(cron.FuncJob(func() { close(ran) }))
	running.Go(third.Run)
	close(second.release) // the first one continues
	receive(t, ran, "the third run")
	close(first.release)
	running.Wait()
}
