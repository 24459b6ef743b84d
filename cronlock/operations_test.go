package cronlock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestPause: a paused job starts nowhere, also when it is paused twice, until it is resumed.
func TestPause(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	here, there := newClient(t, server.Client()), newClient(t, server.Client())
	r := newReplica(t, here, idle)
	ctx, tick := t.Context(), time.Now().Truncate(time.Second)
	if err := cronlock.Register(ctx, r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	job := cronlock.Job(there, "job")
	expectPaused := func(want bool) {
		t.Helper()
		if got, err := job.Paused(ctx); got != want || err != nil {
			t.Errorf("paused: %v, %v; want %v", got, err, want)
		}
	}
	expectPaused(false)
	for range 2 {
		if err := job.Pause(ctx, "anna"); err != nil {
			t.Fatal(err)
		}
	}
	expectPaused(true)
	r.fire(tick)
	r.expect(t, 0, cronlock.Paused)
	for range 2 {
		if err := job.Resume(ctx); err != nil {
			t.Fatal(err)
		}
	}
	expectPaused(false)
	r.fire(time.Now().Add(time.Second))
	r.expect(t, 1, cronlock.Paused)
}

// TestRunNow: it runs beside the ticks, also while the job is paused, and is recorded with them.
func TestRunNow(t *testing.T) {
	t.Parallel()
	type key struct{}
	locks := newClient(t, testkit.Start(t).Client())
	wrong := errors.New("no paper")
	r := newReplica(t, locks, func(ctx context.Context) error {
		if ctx.Value(key{}) != nil {
			return wrong
		}
		return nil
	}, cronlock.WithFailover(2))
	ctx, tick := t.Context(), time.Now().Truncate(time.Second)
	job := cronlock.Job(locks, "job")
	r.fire(tick.Add(-time.Second))
	if err := cronlock.Register(ctx, r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	if err := job.Pause(ctx, "anna"); err != nil {
		t.Fatal(err)
	}
	if err := job.Run(ctx, r.cron); err != nil {
		t.Error(err)
	}
	if err := job.Run(context.WithValue(ctx, key{}, true), r.cron); !errors.Is(err, wrong) {
		t.Errorf("error %v, want that of the function", err)
	}
	runs := expectOutcomes(t, locks, cronlock.Failed, cronlock.Success, cronlock.Success)
	if late := time.Since(runs[0].Tick); late < 0 || late > time.Minute || runs[0].Tick.Equal(runs[1].Tick) {
		t.Errorf("the ticks of runs out of turn are %v and %v", runs[0].Tick, runs[1].Tick)
	}
	records, err := locks.GroupRecords(ctx, "cron:{job}")
	if err != nil || len(records) < 3 {
		t.Fatalf("records %v, error %v", records, err)
	}
	for _, record := range records {
		if record.Label != "job" {
			t.Errorf("%s has the label %q", record.Key, record.Label)
		}
		if strings.Contains(record.Key, ":now:") && record.Retention > 20*time.Hour {
			t.Errorf("%s is kept for %v", record.Key, record.Retention)
		}
	}
}

// TestRunNowEnds with the context of its caller, and with the context of the jobs.
func TestRunNowEnds(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	jobs, stop := context.WithCancel(t.Context())
	long := newBlocking()
	r := newReplica(t, locks, long.run, cronlock.WithContext(jobs), cronlock.WithFailover(2))
	job := cronlock.Job(locks, "job")
	ctx, cancel := context.WithCancel(t.Context())
	for _, end := range []func(){cancel, stop} {
		ended := make(chan error, 1)
		go func() { ended <- job.Run(ctx, r.cron) }()
		receive(t, long.running, "the run")
		end()
		if err := receive(t, ended, "its end"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		ctx = t.Context()
	}
	if err := job.Run(ctx, r.cron); !errors.Is(err, context.Canceled) {
		t.Errorf("after the jobs were stopped: %v", err)
	}
	expectOutcomes(t, locks, cronlock.Interrupted, cronlock.Interrupted)
}

// TestRunNowOverlaps: nobody enters a run that continues, not even from within.
func TestRunNowOverlaps(t *testing.T) {
	t.Parallel()
	r := newReplica(t, newClient(t, testkit.Start(t).Client()), idle)
	var within error
	r.cron = cron.New()
	r.add(t, after(time.Hour), func(ctx context.Context) error {
		within = cronlock.Job(r.locks, "job").Run(ctx, r.cron)
		return nil
	})
	r.fire(time.Now().Truncate(time.Second))
	if !errors.Is(within, cronlock.ErrOverlap) {
		t.Errorf("error %v, want ErrOverlap", within)
	}
	expectOutcomes(t, r.locks, cronlock.Skipped, cronlock.Success)
}

// TestHistory tells of each run what was said of it.
func TestHistory(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	long := newBlocking()
	a := newReplica(t, newClient(t, server.Client(), core.WithInstance("a")), long.run)
	b := newReplica(t, newClient(t, server.Client(), core.WithInstance("b")), idle)
	tick := time.Now().Truncate(time.Second)
	b.fire(tick)
	wait := a.start(tick.Add(time.Second))
	receive(t, long.running, "the run of a")
	b.fire(tick.Add(2 * time.Second))
	runs := expectOutcomes(t, b.locks, cronlock.Skipped, cronlock.Running, cronlock.Success)
	for i, replica := range []string{"b", "a", "b"} {
		run, want := runs[i], tick.Add(time.Duration(2-i)*time.Second)
		fenced := run.Outcome != cronlock.Running
		if run.Job != "job" || run.Replica != replica || run.Attempt != 1 || !run.Tick.Equal(want) ||
			time.Since(run.Started).Abs() > time.Minute || run.Took < 0 || (run.Token != 0) != fenced {
			t.Errorf("run %d: %+v", i, run)
		}
	}
	close(long.release)
	wait()
	if runs := history(t, newClient(t, server.Client())); len(runs) != 3 {
		t.Errorf("another client sees %+v", runs)
	}
}

// TestOperationsRefuse what cannot be meant.
func TestOperationsRefuse(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	ctx := t.Context()
	for name, err := range map[string]error{
		"Jobs without a client":    second(cronlock.Jobs(ctx, nil)),
		"History without a client": second(cronlock.Job(nil, "job").History(ctx)),
		"History without a name":   second(cronlock.Job(locks, "").History(ctx)),
		"Pause without a client":   cronlock.Job(nil, "job").Pause(ctx, "anna"),
		"Pause with braces":        cronlock.Job(locks, "{job}").Pause(ctx, "anna"),
		"Resume without a client":  cronlock.Job(nil, "job").Resume(ctx),
		"Paused without a client":  second(cronlock.Job(nil, "job").Paused(ctx)),
		"Run without a cron":       cronlock.Job(locks, "job").Run(ctx, nil),
		"Run of no job":            cronlock.Job(locks, "job").Run(ctx, cron.New()),
	} {
		if !isInvalid(err) && !errors.Is(err, cronlock.ErrUnknownJob) || !strings.HasPrefix(err.Error(), "holdfast: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestJobHandleRefuses: each method of a handle without a client or with a wrong name returns an error, and does not
// connect to Redis.
func TestJobHandleRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		t.Error("Redis was asked")
		return nil, errors.New("no route")
	}})
	t.Cleanup(func() { _ = rdb.Close() })
	locks, c := newClient(t, rdb), cron.New()
	if _, err := cronlock.AddFunc(c, locks, "@yearly", "job", func(context.Context) error {
		t.Error("the job ran")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		job  *cronlock.JobHandle
		says string
	}{
		"nil client":  {cronlock.Job(nil, "job"), "the client is nil"},
		"zero handle": {&cronlock.JobHandle{}, "the client is nil"},
		"nil handle":  {nil, "the client is nil"},
		"no name":     {cronlock.Job(locks, ""), "the job has no name"},
		"braces":      {cronlock.Job(locks, "{job}"), "braces and NUL are not allowed"},
		"long name":   {cronlock.Job(locks, strings.Repeat("x", 201)), "name of 201 bytes"},
	} {
		_, info := test.job.Info(ctx)
		_, history := test.job.History(ctx)
		_, paused := test.job.Paused(ctx)
		for method, err := range map[string]error{
			"Info": info, "History": history, "Paused": paused, "Pause": test.job.Pause(ctx, "anna"),
			"Resume": test.job.Resume(ctx), "Run": test.job.Run(ctx, c),
		} {
			if !isInvalid(err) && !errors.Is(err, cronlock.ErrUnknownJob) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s, %s: error %v, want %q", name, method, err, test.says)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }
