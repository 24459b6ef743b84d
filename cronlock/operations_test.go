package cronlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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
	expectPaused := func(want bool) {
		t.Helper()
		if got, err := cronlock.IsPaused(ctx, there, "job"); got != want || err != nil {
			t.Errorf("paused: %v, %v; want %v", got, err, want)
		}
	}
	expectPaused(false)
	for range 2 {
		if err := cronlock.Pause(ctx, there, "job"); err != nil {
			t.Fatal(err)
		}
	}
	expectPaused(true)
	r.fire(tick)
	r.expect(t, 0, cronlock.Paused)
	for range 2 {
		if err := cronlock.Resume(ctx, there, "job"); err != nil {
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
	r.fire(tick.Add(-time.Second))
	if err := cronlock.Register(ctx, r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	if err := cronlock.Pause(ctx, locks, "job"); err != nil {
		t.Fatal(err)
	}
	if err := cronlock.RunNow(ctx, r.cron, "job"); err != nil {
		t.Error(err)
	}
	if err := cronlock.RunNow(context.WithValue(ctx, key{}, true), r.cron, "job"); !errors.Is(err, wrong) {
		t.Errorf("error %v, want that of the function", err)
	}
	runs := expectOutcomes(t, locks, cronlock.Failed, cronlock.Success, cronlock.Success)
	if late := time.Since(runs[0].Tick); late < 0 || late > time.Minute || runs[0].Tick.Equal(runs[1].Tick) {
		t.Errorf("the ticks of runs out of turn are %v and %v", runs[0].Tick, runs[1].Tick)
	}
	records, err := locks.Records(ctx, "cron:{job}")
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

// TestRunNowEnds with the context of its caller, and with that of the jobs.
func TestRunNowEnds(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	jobs, stop := context.WithCancel(t.Context())
	long := newBlocking()
	r := newReplica(t, locks, long.run, cronlock.WithContext(jobs), cronlock.WithFailover(2))
	ctx, cancel := context.WithCancel(t.Context())
	for _, end := range []func(){cancel, stop} {
		ended := make(chan error, 1)
		go func() { ended <- cronlock.RunNow(ctx, r.cron, "job") }()
		receive(t, long.running, "the run")
		end()
		if err := receive(t, ended, "its end"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		ctx = t.Context()
	}
	if err := cronlock.RunNow(ctx, r.cron, "job"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the jobs were stopped: %v", err)
	}
	expectOutcomes(t, locks, cronlock.Interrupted, cronlock.Interrupted)
}

// TestRunNowOverlaps: nobody enters a run that goes on, not even from within.
func TestRunNowOverlaps(t *testing.T) {
	t.Parallel()
	r := newReplica(t, newClient(t, testkit.Start(t).Client()), idle)
	var within error
	r.cron = cron.New()
	r.add(t, after(time.Hour), func(ctx context.Context) error {
		within = cronlock.RunNow(ctx, r.cron, "job")
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
	a := newReplica(t, newClient(t, server.Client()), long.run, cronlock.WithReplica("a"))
	b := newReplica(t, newClient(t, server.Client()), idle, cronlock.WithReplica("b"))
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
		"Jobs without a client":     second(cronlock.Jobs(ctx, nil)),
		"History without a client":  second(cronlock.History(ctx, nil, "job")),
		"History without a name":    second(cronlock.History(ctx, locks, "")),
		"Pause without a client":    cronlock.Pause(ctx, nil, "job"),
		"Pause with braces":         cronlock.Pause(ctx, locks, "{job}"),
		"Resume without a client":   cronlock.Resume(ctx, nil, "job"),
		"IsPaused without a client": second(cronlock.IsPaused(ctx, nil, "job")),
		"RunNow without a cron":     cronlock.RunNow(ctx, nil, "job"),
		"RunNow of no job":          cronlock.RunNow(ctx, cron.New(), "job"),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "holdfast: cronlock: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
