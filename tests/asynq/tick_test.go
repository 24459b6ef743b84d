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

// TestByTick: one key for each tick, in every queue. All other IDs have none.
func TestByTick(t *testing.T) {
	t.Parallel()
	key := asynqlock.ByTick()
	const id = "cron:report:2026-03-01T04:05:06Z"
	first, err := seen{id, "a", task("x", "p")}.key(t, key)
	wantNil(t, err)
	if other, err := (seen{id, "b", task("x", "q")}).key(t, key); err != nil || other != first {
		t.Errorf("%q, %v in another queue, want %q", other, err, first)
	}
	keys := map[string]string{first: id}
	for _, id := range []string{
		"cron:report:2026-03-01T04:05:07Z", "cron:report:2026-03-01T04:05:06.5Z", "cron:reports:2026-03-01T04:05:06Z",
		"cron:cron:report:2026-03-01T04:05:06Z", "cron:a:b:c:2026-03-01T04:05:06Z",
		"cron:2026-03-01T04:05:06Z:2026-03-01T04:05:06Z",
	} {
		got, err := seen{id, "a", task("x", "")}.key(t, key)
		if err != nil || keys[got] != "" {
			t.Errorf("%s: %q, %v, that of %s", id, got, err, keys[got])
		}
		keys[got] = id
	}
	for _, id := range []string{
		"", "report", "cron:", "cron:report", "cron:report:", "cron:2026-03-01T04:05:06Z", "cron::2026-03-01T04:05:06Z",
		"report:2026-03-01T04:05:06Z", "cron:report:2026-03-01T04:05:06", "cron:report:2026-03-01T04:05:06+00:00",
		"cron:report:2026-03-01T05:05:06+01:00", "cron:report:2026-03-01T04:05:06.50Z", "cron:report:2026-02-30T04:05:06Z",
		"Cron:report:2026-03-01T04:05:06Z", " cron:report:2026-03-01T04:05:06Z", "::", ":::", "cron:a:b:c",
	} {
		if got, err := (seen{id, "a", task("x", "")}).key(t, key); got != "" || !errors.Is(err, asynqlock.ErrNoKey) {
			t.Errorf("%s: %q, %v", id, got, err)
		}
	}
}

// TestTickFrom: job and tick, in UTC, of the task whose context it is.
func TestTickFrom(t *testing.T) {
	t.Parallel()
	ctx := asynqlock.ContextWithTask(t.Context(), &asynq.TaskInfo{ID: "cron:daily:report:2026-03-01T04:05:06Z"})
	job, tick, ok := asynqlock.TickFrom(ctx)
	if want := time.Date(2026, 3, 1, 4, 5, 6, 0, time.UTC); !ok || job != "daily:report" || tick != want {
		t.Errorf("%q, %v, %v", job, tick, ok)
	}
	if job, tick, ok := asynqlock.TickFrom(t.Context()); ok || job != "" || !tick.IsZero() {
		t.Errorf("without asynq: %q, %v", job, tick)
	}
}

// ticker collects what becomes of ticks, on all replicas and workers.
type ticker struct {
	mu      sync.Mutex
	started map[time.Time]int // by replicas, one count for each attempt
	by      map[string]int    // the same, for each replica, by the address that it enqueues at
	lost    []core.NotRun     // ticks that run on no replica
	failed  []error
	run     map[time.Time]int // by workers
}

func newTicker() *ticker {
	return &ticker{started: make(map[time.Time]int), by: make(map[string]int), run: make(map[time.Time]int)}
}

func (k *ticker) hooks() core.Option {
	return core.WithHooks(core.Hooks{
		RunStart: func(ctx context.Context, start core.RunStart) context.Context {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.started[start.Due.UTC()]++
			run, _ := cronlock.RunFrom(ctx)
			k.by[run.Replica]++
			return ctx
		},
		RunEnd: func(ctx context.Context, end core.RunEnd) {
			k.mu.Lock()
			defer k.mu.Unlock()
			if run, _ := cronlock.RunFrom(ctx); end.Err != nil && run.Outcome != cronlock.Interrupted {
				k.failed = append(k.failed, end.Err)
			}
		},
		NotRun: func(_ context.Context, not core.NotRun) {
			k.mu.Lock()
			defer k.mu.Unlock()
			if not.Reason != cronlock.Taken && not.Reason != cronlock.Stopped {
				k.lost = append(k.lost, not)
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
	task := asynq.NewTask(kind, []byte(`{"order":"7"}`), asynq.MaxRetry(3))
	if _, err := asynqlock.Enqueue(c, s.newLocks(core.WithLogger(nil), core.WithInstance(conn.Addr), ticks.hooks()), client, "@every 1s", "report", task, opts...); err != nil {
		s.t.Fatal(err)
	}
	c.Start()
	stop = func() { <-c.Stop().Done() }
	s.t.Cleanup(stop)
	return stop
}
