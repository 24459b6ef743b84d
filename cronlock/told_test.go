package cronlock_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// ledger counts how often ticks were started or skipped.
type ledger struct {
	enough int
	full   chan struct{} // closed then

	mu   sync.Mutex
	told map[int64]int
}

func newLedger(enough int) *ledger {
	return &ledger{enough: enough, full: make(chan struct{}), told: map[int64]int{}}
}

func (l *ledger) note(tick time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told[tick.UnixNano()]++; l.told[tick.UnixNano()] == 1 && len(l.told) == l.enough {
		close(l.full)
	}
}

// once checks that each tick from the first to the last one was told once.
func (l *ledger) once(t *testing.T, period time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var ticks []int64
	for tick, n := range l.told {
		if ticks = append(ticks, tick); n != 1 {
			t.Errorf("tick %v was told %d times", time.Unix(0, tick), n)
		}
	}
	slices.Sort(ticks)
	for i := 1; i < len(ticks); i++ {
		if missing := (ticks[i]-ticks[i-1])/int64(period) - 1; missing != 0 {
			t.Errorf("%d ticks were not told after %v", missing, time.Unix(0, ticks[i-1]))
		}
	}
}

// TestEveryTickIsTold: each tick is started or skipped, once, though the period is shorter than the scheduler is late,
// and although others ask the schedule for its ticks.
func TestEveryTickIsTold(t *testing.T) {
	t.Parallel()
	jitter := func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			time.Sleep(rand.N(30 * time.Millisecond))
			job.Run()
		})
	}
	const period = 5 * time.Millisecond
	for name, chain := range map[string]cron.Chain{"prompt": cron.NewChain(), "with jitter": cron.NewChain(jitter)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := newClient(t, testkit.Start(t).Client())
			c, all := cron.New(cron.WithChain(chain.Then)), newLedger(200)
			id, err := cronlock.AddSchedule(c, locks, each(period), "job", idle, cronlock.WithLogger(quiet),
				cronlock.WithHooks(cronlock.Hooks{
					Started: func(_ context.Context, run cronlock.Run) { all.note(run.Tick) },
					Skipped: func(skip cronlock.Skip) { all.note(skip.Tick) },
				}))
			if err != nil {
				t.Fatal(err)
			}
			c.Start()
			for full := false; !full; {
				next := c.Entry(id).Schedule.Next
				next(next(time.Now().Add(-time.Minute)))
				select {
				case <-all.full:
					full = true
				case <-time.After(period):
				}
			}
			<-c.Stop().Done()
			all.once(t, period)
		})
	}
}

// TestNextIsPure: whoever asks for ticks, of the past too, changes nothing.
func TestNextIsPure(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	now := time.Now().Truncate(time.Second)
	ticks := at(now.Add(-2*time.Minute), now.Add(-time.Minute), now.Add(time.Hour))
	old := &replica{cron: cron.New(), locks: newClient(t, rdb)}
	old.add(t, ticks, idle, cronlock.WithStartDeadline(time.Hour))
	old.fire(now.Add(-2 * time.Minute))

	r := &replica{cron: cron.New(), locks: newClient(t, rdb)}
	r.add(t, ticks, idle, cronlock.WithCatchUp(time.Hour))
	ask := func() {
		for _, entry := range r.cron.Entries() {
			for _, from := range []time.Duration{-time.Hour, 0, time.Hour} {
				entry.Schedule.Next(now.Add(from))
			}
		}
	}
	ask()
	r.cron.Start()
	ask()
	testkit.Eventually(t, patience, "the tick is caught up", func() bool { return len(r.runs()) > 0 })
	<-r.cron.Stop().Done()
	r.expect(t, 1)
}
