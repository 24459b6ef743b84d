package cronlock_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestPanics: however a function or a hook ends, that is recorded, a panic goes on to the wrappers of the cron, and the
// next tick finds the job free.
func TestPanics(t *testing.T) {
	t.Parallel()
	type hooks = cronlock.Hooks
	for _, test := range []struct {
		name  string
		fn    func(context.Context) error
		hooks hooks
		want  cronlock.Outcome
	}{
		{"function", func(context.Context) error { panic("no paper") }, hooks{}, cronlock.Panicked},
		{"Goexit", func(context.Context) error { runtime.Goexit(); return nil }, hooks{}, cronlock.Panicked},
		{
			"Started", idle,
			hooks{Started: func(context.Context, cronlock.Run) { panic("in a hook") }},
			cronlock.Panicked,
		},
		{
			"Finished", idle,
			hooks{Finished: func(context.Context, cronlock.Run, error) { panic("in a hook") }},
			cronlock.Success,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			locks := newClient(t, testkit.Start(t).Client())
			var panics counter
			bad := &replica{cron: cron.New(cron.WithChain(cron.Recover(&panics))), locks: locks}
			bad.add(t, after(time.Hour), test.fn, cronlock.WithHooks(test.hooks))
			tick := time.Now().Truncate(time.Second)
			bad.start(tick)()
			expectOutcomes(t, locks, test.want)
			if want := map[bool]int{true: 0, false: 1}[test.name == "Goexit"]; panics.count() != want {
				t.Errorf("%d panics reached the wrappers, want %d", panics.count(), want)
			}
			good := newReplica(t, locks, idle)
			good.fire(tick)
			good.fire(tick.Add(time.Second))
			good.expect(t, 1, cronlock.Taken)
		})
	}
}

// TestSkippedPanics: a hook that panics about a skipped tick leaves nothing behind.
func TestSkippedPanics(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	long := newBlocking()
	a := newReplica(t, locks, long.run)
	b := &replica{cron: cron.New(cron.WithChain(cron.Recover(cron.DiscardLogger))), locks: locks}
	b.add(t, after(time.Hour), idle,
		cronlock.WithHooks(cronlock.Hooks{Skipped: func(cronlock.Skip) { panic("in a hook") }}))
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
