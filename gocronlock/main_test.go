package gocronlock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
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

func TestMain(m *testing.M) {
	if order := os.Getenv(workerEnv); order != "" {
		if err := work(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.VerifyTestMain(m)
}

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

// blocking is a job that signals when it runs and ends on request, whatever becomes of its context.
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
	testkit.Eventually(t, patience, "leadership", func() bool { return l.IsLeader(context.Background()) == nil })
}

func forceUnlock(t testing.TB, rdb redis.UniversalClient, name string) {
	t.Helper()
	if forced, err := newClient(t, rdb).ForceUnlock(context.Background(), name); err != nil || !forced {
		t.Fatalf("force %s: %v, %v", name, forced, err)
	}
}

// workerEnv makes the test binary a worker process. Its value is an order: "elect" or "lock", and network and address of the
// server.
const workerEnv = "HOLDFAST_GOCRON_WORKER"

// stay is one run of the job, by Redis's clock in microseconds.
type stay struct {
	Token, From, To int64
}

// work runs a scheduler until its input ends, and says each run in a line of JSON.
func work(order string) error {
	var what, network, addr string
	if _, err := fmt.Sscan(order, &what, &network, &addr); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Network: network, Addr: addr})
	defer rdb.Close()
	locks, err := core.New(rdb, core.WithTTL(time.Second), core.WithLogger(nil))
	if err != nil {
		return err
	}
	defer locks.Close()
	out := json.NewEncoder(os.Stdout) // one run at a time writes, in one process too
	job := func(ctx context.Context) error {
		token, _ := core.TokenFrom(ctx)
		from := rdb.Time(ctx).Val().UnixMicro()
		time.Sleep(3 * time.Millisecond) // others come meanwhile
		to, err := rdb.Time(ctx).Result()
		if err != nil || ctx.Err() != nil {
			return err
		}
		return out.Encode(stay{token, from, to.UnixMicro()})
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	option := gocron.SchedulerOption(nil)
	if what == "elect" {
		elector := gocronlock.Elector(locks.Election("scheduler"))
		go func() { _ = elector.Lead(ctx) }()
		job, option = elector.Func(job), gocron.WithDistributedElector(elector)
	} else {
		locker := gocronlock.Locker(locks.Mutex, core.WithMinHold(0))
		job, option = locker.Func(job), gocron.WithDistributedLocker(locker)
	}
	s, err := gocron.NewScheduler(option)
	if err != nil {
		return err
	}
	_, err = s.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(job), gocron.WithName("job"),
		gocron.WithSingletonMode(gocron.LimitModeReschedule))
	if err != nil {
		return err
	}
	s.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Shutdown()
}

// run is a stay of a worker.
type run struct {
	stay
	worker int
}

// startWorker starts a process whose runs arrive on runs, and returns what kills it.
func startWorker(t testing.TB, server *testkit.Server, what string, number int, runs chan<- run) (kill func()) {
	t.Helper()
	options := server.Client().Options()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", workerEnv, what, options.Network, options.Addr))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var s stay
			if json.Unmarshal(lines.Bytes(), &s) == nil {
				runs <- run{s, number}
			}
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Errorf("worker %d does not end", number)
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	return func() { _ = cmd.Process.Kill(); <-ended }
}
