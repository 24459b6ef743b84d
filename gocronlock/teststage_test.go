package gocronlock_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const patience = 30 * time.Second

func newClient(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithLogger(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// newScheduler starts a replica's scheduler, which the end of the test shuts down.
func newScheduler(t testing.TB, opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(opts...)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { _ = s.Shutdown() })
	return s
}

// addJob adds a job that nothing starts but RunNow.
func addJob(t testing.TB, s gocron.Scheduler, fn any, opts ...gocron.JobOption) gocron.Job {
	t.Helper()
	j, err := s.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(fn), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func runNow(t testing.TB, j gocron.Job) {
	t.Helper()
	if err := j.RunNow(); err != nil {
		t.Fatal(err)
	}
}

// events are what gocron says of a job, in a word for each run.
type events chan string

func newEvents() events { return make(events, 1000) }

func (e events) listeners() gocron.JobOption {
	return gocron.WithEventListeners(
		gocron.AfterJobRuns(func(uuid.UUID, string) { e <- "ran" }),
		gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { e <- "failed: " + err.Error() }),
		gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {}), // gocron recovers only with it, and says failed too
		gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { e <- "locked: " + err.Error() }),
	)
}

// expect waits for the next event, which has to contain each text.
func (e events) expect(t testing.TB, texts ...string) {
	t.Helper()
	got := receive(t, e, "an event of gocron")
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("gocron says %q, want %q", got, text)
		}
	}
}

func receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
		panic("unreachable")
	}
}

// blocking is a job that says when it runs, and ends when told, whatever becomes of its context.
type blocking struct {
	running chan context.Context
	release chan error
}

func newBlocking() *blocking {
	return &blocking{running: make(chan context.Context, 100), release: make(chan error)}
}

func (b *blocking) run(ctx context.Context) error {
	b.running <- ctx
	return <-b.release
}

// record is a log in memory.
type record struct{ testkit.Log }

func (r *record) logger() core.Option {
	return core.WithLogger(slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

func (r *record) count(text string) int {
	return strings.Count(r.String(), text)
}

// expect waits for a line of the log.
func (r *record) expect(t testing.TB, text string) {
	t.Helper()
	testkit.Eventually(t, patience, "the log to have: "+text, func() bool { return r.count(text) > 0 })
}

// leader is an elector that leads until it is stopped.
type leader struct {
	*gocronlock.LeaderElector
	stop func() error // and waits for the end of Lead
}

func newLeader(t testing.TB, e *core.Election) *leader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &leader{LeaderElector: gocronlock.Elector(e)}
	done := make(chan error, 1)
	go func() { done <- l.Lead(ctx) }()
	l.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := l.stop(); err != nil {
			t.Errorf("Lead returned %v", err)
		}
	})
	return l
}

func (l *leader) awaitLead(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, patience, "the lead", func() bool { return l.IsLeader(context.Background()) == nil })
}

func forceUnlock(t testing.TB, rdb redis.UniversalClient, name string) {
	t.Helper()
	if forced, err := newClient(t, rdb).ForceUnlock(context.Background(), name); err != nil || !forced {
		t.Fatalf("force %s: %v, %v", name, forced, err)
	}
}
