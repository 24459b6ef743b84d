package cronlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUnknownJob: a name that no replica has is no name of a job, for whatever an operator asks.
func TestUnknownJob(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	r := newReplica(t, locks, idle)
	if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(job *cronlock.JobHandle) error{
		"Pause":   func(job *cronlock.JobHandle) error { return job.Pause(t.Context(), "anna") },
		"Paused":  func(job *cronlock.JobHandle) error { return second(job.Paused(t.Context())) },
		"Resume":  func(job *cronlock.JobHandle) error { return job.Resume(t.Context()) },
		"History": func(job *cronlock.JobHandle) error { return second(job.History(t.Context())) },
		"Info":    func(job *cronlock.JobHandle) error { return second(job.Info(t.Context())) },
		"Run":     func(job *cronlock.JobHandle) error { return job.Run(t.Context(), r.cron) },
	} {
		if err := ask(cronlock.Job(locks, "jbo")); !errors.Is(err, cronlock.ErrUnknownJob) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := ask(cronlock.Job(locks, "job")); err != nil {
			t.Errorf("%s of a job that has not run: %v", name, err)
		}
	}
}

// TestJobs lists what replicas have, in a Cluster too, from when their crons begin.
func TestJobs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	locks := newClient(t, testkit.StartCluster(t, 3).Client())
	tick := time.Now().Truncate(time.Second)
	c := cron.New(cron.WithLocation(time.UTC))
	for name, spec := range map[string]string{"report": "0 3 * * *", "mail": "@every 1h"} {
		_, err := cronlock.AddFunc(c, locks, spec, name, idle, cronlock.WithService("shop"))
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cronlock.AddSchedule(c, locks, after(time.Hour), "own", idle); err != nil {
		t.Fatal(err)
	}
	c.Start()
	defer c.Stop()
	testkit.Eventually(t, patience, "all are registered", func() bool {
		jobs, err := cronlock.Jobs(ctx, locks)
		return err == nil && len(jobs) == 3
	})
	cronlock.Fire(c, "report", tick)
	for _, who := range []string{"anna\n@ops", "ben"} { // the first one counts
		if err := cronlock.Job(locks, "mail").Pause(ctx, who); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now()
	jobs, err := cronlock.Jobs(ctx, locks)
	if err != nil || len(jobs) != 3 {
		t.Fatalf("jobs %+v, error %v", jobs, err)
	}
	for i, want := range []cronlock.JobInfo{
		{Name: "mail", Service: "shop", Spec: "@every 1h", Zone: "UTC", Paused: true, PausedBy: "anna@ops"},
		{Name: "own", Spec: "cronlock_test.schedule", Zone: "UTC"},
		{Name: "report", Service: "shop", Spec: "0 3 * * *", Zone: "UTC", LastTick: tick.UTC()},
	} {
		got := jobs[i]
		if time.Since(got.Registered).Abs() > time.Minute {
			t.Errorf("%s registered at %v", got.Name, got.Registered)
		}
		if want.Service == "" && got.Service != "" {
			want.Service = got.Service // the test's
		}
		if got.Paused == got.PausedAt.IsZero() || got.Paused && time.Since(got.PausedAt).Abs() > time.Minute {
			t.Errorf("%s is paused: %v, since %v", got.Name, got.Paused, got.PausedAt)
		}
		next := map[string]func(time.Time) time.Time{
			"mail": func(now time.Time) time.Time { return now.Truncate(time.Hour).Add(time.Hour) },
			"own":  func(time.Time) time.Time { return time.Time{} }, // nobody else can know it
			"report": func(now time.Time) time.Time {
				return now.Add(-3 * time.Hour).Truncate(24 * time.Hour).Add(27 * time.Hour)
			},
		}[got.Name]
		if !got.NextTick.Equal(next(before)) && !got.NextTick.Equal(next(time.Now())) {
			t.Errorf("%s: the next tick is at %v, want %v", got.Name, got.NextTick, next(before))
		}
		want.Registered, want.PausedAt, want.NextTick = got.Registered, got.PausedAt, got.NextTick
		if got != want {
			t.Errorf("job %+v, want %+v", got, want)
		}
		if one, err := cronlock.Job(locks, got.Name).Info(ctx); err != nil || one.Registered != got.Registered || one.Spec != got.Spec ||
			one.PausedBy != got.PausedBy {
			t.Errorf("alone: %+v, error %v; in the list: %+v", one, err, got)
		}
	}
	if _, err := cronlock.Job(locks, "malil").Info(ctx); !errors.Is(err, cronlock.ErrUnknownJob) {
		t.Errorf("job of a wrong name: error %v", err)
	}
	mail := cronlock.Job(locks, "mail")
	if err := mail.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	if info, err := mail.Info(ctx); err != nil || info.Paused || info.PausedBy != "" || !info.PausedAt.IsZero() {
		t.Errorf("after Resume: %+v, error %v", info, err)
	}
}

// TestPausedBy: who has paused a job is known, whoever that is.
func TestPausedBy(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	r := newReplica(t, locks, idle)
	if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	job := cronlock.Job(locks, "job")
	host, _ := os.Hostname()
	process := host + ":" + strconv.Itoa(os.Getpid())
	for _, test := range []struct{ by, want string }{
		{"", process}, {"Zoë\x00\xff", "Zoë"}, {strings.Repeat("é", 101) + "!", strings.Repeat("é", 100)},
	} {
		if err := job.Pause(t.Context(), test.by); err != nil {
			t.Fatal(err)
		}
		info, err := job.Info(t.Context())
		if err != nil || info.PausedBy != test.want {
			t.Errorf("paused by %q, error %v; want %q", info.PausedBy, err, test.want)
		}
		if err := job.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRegistrationExpires, and is renewed before that.
func TestRegistrationExpires(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	for period, least := range map[time.Duration]time.Duration{
		time.Second: 48 * time.Hour, 30 * 24 * time.Hour: 90 * 24 * time.Hour,
	} {
		r := &replica{cron: cron.New(), locks: locks}
		r.add(t, after(period), idle, cronlock.WithService("shop"))
		retention := func() time.Duration {
			t.Helper()
			if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
				t.Fatal(err)
			}
			record, err := locks.Once("cron:{holdfast:cronlock:jobs}:job:job").Peek(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return record.Retention
		}
		if got := retention(); (got - least).Abs() > time.Minute {
			t.Errorf("period %v: kept for %v, want %v", period, got, least)
		}
		for _, key := range rdb.Keys(t.Context(), "*once=*cronlock:jobs*").Val() {
			rdb.PExpire(t.Context(), key, least-2*time.Hour)
		}
		if got := retention(); (got - least).Abs() > time.Minute {
			t.Errorf("period %v: kept for %v after a renewal, want %v", period, got, least)
		}
		registered := locks.Once("cron:{holdfast:cronlock:jobs}:job:job")
		seen, err := registered.Peek(t.Context())
		if err == nil {
			err = registered.Forget(t.Context(), seen)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPausedTicksStaySkipped: ticks during a pause are not run after it, neither by catching up nor by a replica that
// comes late for them. Those that are missed after it are.
func TestPausedTicksStaySkipped(t *testing.T) {
	t.Parallel()
	ctx, rdb := t.Context(), testkit.Start(t).Client()
	now := time.Now().Truncate(time.Second)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	old := &replica{cron: cron.New(), locks: newClient(t, rdb)}
	old.add(t, at(ago(2*time.Hour), ago(time.Hour)), idle, cronlock.WithStartDeadline(3*time.Hour))
	old.fire(ago(2 * time.Hour))
	job := cronlock.Job(old.locks, "job")
	if err := errors.Join(cronlock.Register(ctx, old.cron, "job"), job.Pause(ctx, "anna")); err != nil {
		t.Fatal(err)
	}
	old.fire(ago(time.Hour))
	for range 2 { // the second time it is not paused
		if err := job.Resume(ctx); err != nil {
			t.Fatal(err)
		}
	}
	old.fire(ago(time.Hour))
	old.expect(t, 1, cronlock.Paused, cronlock.Paused)

	r := &replica{cron: cron.New(), locks: newClient(t, rdb)}
	r.add(t, at(ago(2*time.Hour), ago(time.Hour), now.Add(time.Hour)), idle, cronlock.WithCatchUp(5*time.Hour))
	begin(t, r)
	r.expect(t, 0)

	resumed(t, rdb, now.Add(-90*time.Minute))
	r = &replica{cron: cron.New(), locks: newClient(t, rdb)}
	r.add(t, at(ago(2*time.Hour), ago(time.Hour), now.Add(time.Hour)), idle, cronlock.WithCatchUp(5*time.Hour))
	begin(t, r)
	r.expect(t, 1)
}

// TestRunNowIsRemembered as long as a tick, though the next one may be near.
func TestRunNowIsRemembered(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	r := &replica{cron: cron.New(), locks: locks}
	r.add(t, at(time.Now().Add(-24*time.Hour+time.Minute), time.Now().Add(time.Minute)), idle)
	if err := cronlock.Job(locks, "job").Run(t.Context(), r.cron); err != nil {
		t.Fatal(err)
	}
	records, err := locks.GroupRecords(t.Context(), "cron:{job}")
	if err != nil || len(records) != 1 {
		t.Fatalf("records %v, error %v", records, err)
	}
	if got := records[0].Retention; got < 19*24*time.Hour {
		t.Errorf("kept for %v", got)
	}
}

// TestRegistrationOfClosedClient leaves nothing behind.
func TestRegistrationOfClosedClient(t *testing.T) {
	t.Parallel()
	r := newReplica(t, newClient(t, testkit.Start(t).Client()), idle)
	_ = r.locks.Close()
	if err := cronlock.Register(context.Background(), r.cron, "job"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// resumed changes when the job was resumed.
func resumed(t *testing.T, rdb *redis.Client, when time.Time) {
	t.Helper()
	if rdb.HSet(t.Context(), "holdfast:paused=lock:cron:{job}", "until", when.UnixMicro()).Val() != 0 {
		t.Fatal("it was never resumed")
	}
}

// TestLostRegistration: after Redis has lost its data, the next tick that runs registers the job again, on whichever
// replica, and it can be paused.
func TestLostRegistration(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	r, other := newReplica(t, locks, idle), newReplica(t, newClient(t, server.Client()), idle)
	tick := time.Now().Truncate(time.Second)
	cronlock.Fire(r.cron, "job", tick)
	cronlock.Fire(other.cron, "job", tick)
	known := func() bool {
		jobs, err := cronlock.Jobs(t.Context(), locks)
		return err == nil && len(jobs) == 1
	}
	testkit.Eventually(t, patience, "the job is registered", known)
	job := cronlock.Job(locks, "job")
	for i, replica := range []*replica{r, other, r} {
		if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := job.Pause(t.Context(), "anna"); !errors.Is(err, cronlock.ErrUnknownJob) {
			t.Fatalf("before a tick: error %v", err)
		}
		cronlock.Fire(replica.cron, "job", tick.Add(time.Duration(i+1)*time.Second))
		testkit.Eventually(t, patience, "the job is registered again", known)
		if err := job.Pause(t.Context(), "anna"); err != nil {
			t.Errorf("after a tick: error %v", err)
		}
	}
}

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

// TestHooksGetEveryTick: each tick is started or skipped, once, though the period is shorter than the scheduler is late,
// and although others ask the schedule for its ticks.
func TestHooksGetEveryTick(t *testing.T) {
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
			c, all := cron.New(cron.WithChain(chain.Then)), newLedger(200)
			locks := newClient(t, testkit.Start(t).Client(), core.WithHooks(core.Hooks{
				RunStart: func(ctx context.Context, start core.RunStart) context.Context { all.note(start.Due); return ctx },
				NotRun:   func(_ context.Context, not core.NotRun) { all.note(not.Due) },
			}))
			id, err := cronlock.AddSchedule(c, locks, each(period), "job", idle)
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
