package cronlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

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
	hooks := cronlock.WithHooks(cronlock.Hooks{Skipped: func(skip cronlock.Skip) {
		mu.Lock()
		defer mu.Unlock()
		if skip.Reason == cronlock.Overlapping {
			skipped++
		}
	}})
	for range replicas {
		limit := newClient(t, server.Client()).Limit(n)
		c := cron.New(cron.WithSeconds())
		wrapper := cronlock.Exclusive(limit, "report", cronlock.WithLogger(quiet), hooks)
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
	options := []cronlock.Option{cronlock.WithLogger(quiet), cronlock.WithWait(time.Hour)}
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
	close(second.release) // the first one goes on
	receive(t, ran, "the third run")
	close(first.release)
	running.Wait()
}
