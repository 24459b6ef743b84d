package asynq_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
)

// ticker collects what becomes of ticks, on all replicas and workers.
type ticker struct {
	mu      sync.Mutex
	started map[time.Time]int // by replicas, one count for each attempt
	by      map[string]int    // the same, for each replica
	lost    []cronlock.Skip   // ticks that run on no replica
	failed  []error
	run     map[time.Time]int // by workers
}

func newTicker() *ticker {
	return &ticker{started: make(map[time.Time]int), by: make(map[string]int), run: make(map[time.Time]int)}
}

func (k *ticker) hooks() cronlock.Option {
	return cronlock.WithHooks(cronlock.Hooks{
		Started: func(_ context.Context, run cronlock.Run) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.started[run.Tick.UTC()]++
			k.by[run.Replica]++
		},
		Finished: func(_ context.Context, run cronlock.Run, err error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			if err != nil && run.Outcome != cronlock.Interrupted {
				k.failed = append(k.failed, err)
			}
		},
		Skipped: func(skip cronlock.Skip) {
			k.mu.Lock()
			defer k.mu.Unlock()
			if skip.Reason != cronlock.Taken && skip.Reason != cronlock.Stopped {
				k.lost = append(k.lost, skip)
			}
		},
	})
}

// handle is the handler of tasks.
func (k *ticker) handle(ctx context.Context, _ *asynq.Task) error {
	_, tick, ok := asynqlock.TickFrom(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !ok {
		k.failed = append(k.failed, errors.New("a task of no tick"))
	}
	k.run[tick]++
	return nil
}

// count returns how many ticks have been started and run.
func (k *ticker) count() (started, run int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.started), len(k.run)
}

// wantOnce checks that each tick that a replica has started was run once, and no other one.
func (k *ticker) wantOnce(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for tick := range k.started {
		if k.run[tick] != 1 {
			t.Errorf("tick %v was run %d times", tick, k.run[tick])
		}
	}
	if len(k.run) != len(k.started) || len(k.failed) > 0 || len(k.lost) > 0 {
		t.Errorf("started %v, run %v, failed %v, lost %v", k.started, k.run, k.failed, k.lost)
	}
}

// schedule starts a replica that enqueues a task each second, over an asynq client of its own. What it returns stops
// the schedule and waits for the runs in progress.
func (s *shop) schedule(conn asynq.RedisClientOpt, ticks *ticker, opts ...cronlock.Option) (stop func()) {
	s.t.Helper()
	client := asynq.NewClient(conn)
	s.t.Cleanup(func() { _ = client.Close() })
	c := cron.New(cron.WithLocation(time.UTC))
	opts = append([]cronlock.Option{cronlock.WithLogger(nil), ticks.hooks()}, opts...)
	task := asynq.NewTask(kind, []byte(`{"order":"7"}`), asynq.MaxRetry(3))
	if _, err := asynqlock.Enqueue(c, s.newLocks(core.WithLogger(nil)), client, "@every 1s", "report", task, opts...); err != nil {
		s.t.Fatal(err)
	}
	c.Start()
	stop = func() { <-c.Stop().Done() }
	s.t.Cleanup(stop)
	return stop
}
