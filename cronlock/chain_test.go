package cronlock_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// counted is a wrapper that counts how often the scheduler starts what it wraps.
func counted(n *atomic.Int32) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() { n.Add(1); job.Run() })
	}
}

// TestChainRunsOnceForATick: the wrappers of a cron are started for ticks alone, and not when the scheduler begins.
func TestChainRunsOnceForATick(t *testing.T) {
	t.Parallel()
	const period, ticks = 20 * time.Millisecond, 40
	var starts atomic.Int32
	told := make(chan time.Time, 10*ticks)
	locks := newClient(t, testkit.Start(t).Client(), core.WithHooks(core.Hooks{
		RunEnd: func(_ context.Context, end core.RunEnd) { told <- end.Due },
		NotRun: func(_ context.Context, not core.NotRun) { told <- not.Due },
	}))
	c := cron.New(cron.WithChain(counted(&starts)))
	if _, err := cronlock.AddSchedule(c, locks, each(period), "job", idle); err != nil {
		t.Fatal(err)
	}
	if n := len(c.Entries()); n != 1 {
		t.Errorf("a job is %d entries", n)
	}
	c.Start()
	for range ticks {
		receive(t, told, "a tick")
	}
	<-c.Stop().Done()
	if handled := ticks + len(told); int(starts.Load()) > handled {
		t.Errorf("%d starts for %d ticks", starts.Load(), handled)
	}
}

// TestChainRunsOnceForATakeover: a tick that is watched and taken over passes the wrappers once, and so does the first start of
// a job that has to look for ticks from before.
func TestChainRunsOnceForATakeover(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	var starts atomic.Int32
	ctx, shutDown := context.WithCancel(t.Context())
	long := newBlocking()
	waiting := make(chan struct{}, 10)
	hooks := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waiting <- struct{}{} }})
	runner := newReplica(t, newClient(t, server.Client()), long.run, cronlock.WithFailover(2), cronlock.WithContext(ctx))
	heir := &replica{
		cron:  cron.New(cron.WithChain(counted(&starts))),
		locks: newClient(t, server.Client(), hooks),
	}
	heir.add(t, after(time.Hour), idle, cronlock.WithFailover(2))
	heir.cron.Start()
	defer heir.cron.Stop()
	testkit.Eventually(t, patience, "the start", func() bool { return len(heir.cron.Entries()) == 1 })
	<-heir.cron.Stop().Done() // what the scheduler has started for the beginning has ended, however busy the machine is
	heir.cron.Start()
	before := starts.Load()
	tick := time.Now().Truncate(time.Second)
	ended := runner.start(tick)
	receive(t, long.running, "the run")
	watched := heir.start(tick)
	receive(t, waiting, "the heir watches")
	shutDown()
	ended()
	watched()
	testkit.Eventually(t, patience, "the takeover", func() bool { return len(heir.runs()) == 1 })
	if n := starts.Load() - before; n != 1 {
		t.Errorf("%d starts for the tick", n)
	}
}

// TestRemovedJobDoesNotBegin: a job that is removed before the scheduler begins looks for no ticks.
func TestRemovedJobDoesNotBegin(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	now := time.Now().Truncate(time.Second)
	ticks := at(now.Add(-2*time.Minute), now.Add(-time.Minute), now.Add(time.Hour))
	old := &replica{cron: cron.New(), locks: newClient(t, rdb)}
	old.add(t, ticks, idle, cronlock.WithStartDeadline(time.Hour))
	old.fire(now.Add(-2 * time.Minute))
	r := &replica{cron: cron.New(), locks: newClient(t, rdb)}
	r.add(t, ticks, idle, cronlock.WithCatchUp(time.Hour))
	for _, entry := range r.cron.Entries() {
		if !slices.Contains(cronlock.Starters(r.cron), entry.ID) {
			r.cron.Remove(entry.ID)
		}
	}
	begin(t, r)
	r.expect(t, 0)
	if n := len(r.cron.Entries()); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
