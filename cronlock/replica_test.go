package cronlock_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
)

const patience = 20 * time.Second

var quiet = slog.New(slog.DiscardHandler)

func newClient(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithLogger(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// replica is one process with a cron that has a job called "job". Nothing starts but what a test fires.
type replica struct {
	cron  *cron.Cron
	locks *core.Client

	mu    sync.Mutex
	ends  []cronlock.Run
	skips []cronlock.Skip
}

func idle(context.Context) error { return nil }

// schedule has ticks of all kinds.
type schedule func(time.Time) time.Time

func (s schedule) Next(t time.Time) time.Time { return s(t) }

// after makes a schedule whose ticks, whichever they are, have such a period.
func after(period time.Duration) schedule {
	return func(t time.Time) time.Time { return t.Add(period) }
}

// newReplica makes one whose ticks are an hour apart.
func newReplica(
	t *testing.T, locks *core.Client, fn func(context.Context) error, opts ...cronlock.Option,
) *replica {
	t.Helper()
	r := &replica{cron: cron.New(cron.WithLocation(time.UTC)), locks: locks}
	r.add(t, after(time.Hour), fn, opts...)
	return r
}

func (r *replica) add(t *testing.T, s cron.Schedule, fn func(context.Context) error, opts ...cronlock.Option) {
	t.Helper()
	opts = slices.Concat([]cronlock.Option{cronlock.WithLogger(quiet), cronlock.WithHooks(r.hooks())}, opts)
	if _, err := cronlock.AddSchedule(r.cron, r.locks, s, "job", fn, opts...); err != nil {
		t.Fatal(err)
	}
}

func (r *replica) hooks() cronlock.Hooks {
	return cronlock.Hooks{
		Finished: func(_ context.Context, run cronlock.Run, _ error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ends = append(r.ends, run)
		},
		Skipped: func(skip cronlock.Skip) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.skips = append(r.skips, skip)
		},
	}
}

// fire starts the job for a tick and returns when that has ended.
func (r *replica) fire(tick time.Time) { cronlock.Fire(r.cron, "job", tick) }

// start fires in the background and returns what waits for the end.
func (r *replica) start(tick time.Time) (wait func()) {
	var done sync.WaitGroup
	done.Go(func() { r.fire(tick) })
	return done.Wait
}

func (r *replica) runs() []cronlock.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ends)
}

// reasons are those of the ticks that it has skipped.
func (r *replica) reasons() (all []cronlock.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, skip := range r.skips {
		all = append(all, skip.Reason)
	}
	return all
}

func (r *replica) expect(t *testing.T, runs int, reasons ...cronlock.Reason) {
	t.Helper()
	if got := r.runs(); len(got) != runs {
		t.Errorf("%d runs, want %d: %+v", len(got), runs, got)
	}
	if got := r.reasons(); !slices.Equal(got, reasons) {
		t.Errorf("skipped for %q, want %q: %+v", got, reasons, r.skips)
	}
}

func history(t *testing.T, locks *core.Client) []cronlock.Run {
	t.Helper()
	runs, err := cronlock.Job(locks, "job").History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// expectOutcomes compares the history, the latest first.
func expectOutcomes(t *testing.T, locks *core.Client, want ...cronlock.Outcome) []cronlock.Run {
	t.Helper()
	runs := history(t, locks)
	var got []cronlock.Outcome
	for _, run := range runs {
		got = append(got, run.Outcome)
	}
	if !slices.Equal(got, want) {
		t.Errorf("history %q, want %q: %+v", got, want, runs)
	}
	return runs
}

// blocking is a job that tells when it runs and ends when told, or with its context.
type blocking struct {
	running chan context.Context
	release chan struct{}
}

func newBlocking() *blocking {
	return &blocking{running: make(chan context.Context, 100), release: make(chan struct{})}
}

func (b *blocking) run(ctx context.Context) error {
	b.running <- ctx
	select {
	case <-b.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
		panic("unreachable")
	}
}
