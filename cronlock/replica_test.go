package cronlock_test

import (
	"context"
	"io"
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

func newClient(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	r := new(reports)
	locks, err := core.New(rdb, append([]core.Option{core.WithLogger(nil), core.WithHooks(r.hooks())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	clients.Store(locks, r)
	t.Cleanup(func() { _ = locks.Close(); clients.Delete(locks) })
	return locks
}

// clients has the *reports of each *core.Client of newClient.
var clients sync.Map

// reportsOf returns what the jobs of a client report.
func reportsOf(locks *core.Client) *reports {
	r, _ := clients.Load(locks)
	return r.(*reports)
}

// logTo lets a client log to a buffer, from the level of warnings on.
func logTo(b io.Writer) core.Option {
	return core.WithLogger(slog.New(slog.NewTextHandler(b, nil)))
}

// reports are what the jobs of a client have reported to its hooks.
type reports struct {
	mu        sync.Mutex
	ends      []cronlock.Run
	skips     []core.NotRun
	incidents []core.Incident
}

func (r *reports) hooks() core.Hooks {
	return core.Hooks{
		RunEnd: func(ctx context.Context, _ core.RunEnd) {
			r.mu.Lock()
			defer r.mu.Unlock()
			run, _ := cronlock.RunFrom(ctx)
			r.ends = append(r.ends, run)
		},
		NotRun: func(_ context.Context, not core.NotRun) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.skips = append(r.skips, not)
		},
		Incident: func(_ context.Context, incident core.Incident) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.incidents = append(r.incidents, incident)
		},
	}
}

func (r *reports) runs() []cronlock.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ends)
}

// outcomes returns the outcomes of the runs.
func (r *reports) outcomes() (all []cronlock.Outcome) {
	for _, run := range r.runs() {
		all = append(all, run.Outcome)
	}
	return all
}

// reasons returns why ticks were skipped.
func (r *reports) reasons() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, skip := range r.skips {
		all = append(all, skip.Reason)
	}
	return all
}

// of returns the errors of incidents of a kind.
func (r *reports) of(kind core.IncidentKind) (errs []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, incident := range r.incidents {
		if incident.Kind == kind {
			errs = append(errs, incident.Err)
		}
	}
	return errs
}

func (r *reports) expect(t *testing.T, runs int, reasons ...string) {
	t.Helper()
	if got := r.runs(); len(got) != runs {
		t.Errorf("%d runs, want %d: %+v", len(got), runs, got)
	}
	if got := r.reasons(); !slices.Equal(got, reasons) {
		t.Errorf("skipped for %q, want %q: %+v", got, reasons, r.skips)
	}
}

// replica is one process with a cron that has a job called "job". Nothing starts but what a test fires.
type replica struct {
	*reports
	cron  *cron.Cron
	locks *core.Client
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
	r.reports = reportsOf(r.locks)
	if _, err := cronlock.AddSchedule(r.cron, r.locks, s, "job", fn, opts...); err != nil {
		t.Fatal(err)
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
