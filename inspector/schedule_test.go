package inspector_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// addJob starts a cron with one job, due on the next 29 February.
// A goroutine of cronlock writes the registration, so addJob waits until the job is listed.
func addJob(t testing.TB, locks *core.Client, name string, fn func(context.Context) error) *cron.Cron {
	t.Helper()
	c := cron.New(cron.WithLocation(time.UTC))
	_, err := cronlock.AddFunc(c, locks, "0 3 29 2 *", name, fn, cronlock.WithService("billing"))
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(func() { <-c.Stop().Done() })
	testkit.Eventually(t, patience, "the registration of "+name, func() bool {
		jobs, err := cronlock.Jobs(t.Context(), locks)
		return err == nil && slices.ContainsFunc(jobs, func(j cronlock.JobInfo) bool { return j.Name == name })
	})
	return c
}

// TestSchedules pauses, resumes and runs a job.
func TestSchedules(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client(), core.WithInstance("web-1"))
	fail := errors.New("no paper")
	var run atomic.Bool
	c := addJob(t, locks, "report <b>", func(context.Context) error {
		if run.Load() {
			return nil
		}
		return fail
	})
	s := newSite(t, newClient(t, server.Client()), inspector.WithActions(asAda), inspector.WithCron(c))
	const job = "?name=report%20%3Cb%3E"
	var list struct {
		Jobs []struct{ Name, Service string }
	}
	s.data("cron", &list)
	if len(list.Jobs) != 1 || list.Jobs[0].Name != "report <b>" || list.Jobs[0].Service != "billing" {
		t.Errorf("jobs %+v", list.Jobs)
	}
	contains(t, s.get(http.StatusOK, "cron"), `href="./job`+job+`"`, "0 3 29 2 *", "active")
	contains(t, s.get(http.StatusOK, "job"+job), "pause"+job, "run-now"+job, "has not run yet")
	contains(t, s.get(http.StatusOK, "job"+job), "0 3 29 2 *", "UTC", "billing", "<dt>Next tick</dt><dd><time datetime=", "-02-29T03:00:00Z", "<dt>Missed ticks</dt><dd>none")
	contains(t, s.get(http.StatusOK, "cron"), `<td data-label="Next tick"><time datetime="`, "-02-29 03:00 UTC")
	contains(t, s.act(http.StatusOK, "pause"+job, "report <b>"), "The job is paused", "resume"+job)
	contains(t, s.get(http.StatusOK, "cron"), `paused</span><div class="value">by ada</div><div class="value"><time datetime=`)
	contains(t, s.get(http.StatusOK, "job"+job), `paused</span><div class="value">by ada</div><div class="value"><time datetime=`)
	var paused struct {
		By   string    `json:"paused_by"`
		At   time.Time `json:"paused_at"`
		Next time.Time `json:"next_tick"`
	}
	if s.data("job"+job, &paused); paused.By != "ada" || paused.At.IsZero() || paused.Next.IsZero() {
		t.Errorf("%+v", paused)
	}
	if paused, err := cronlock.Job(locks, "report <b>").Paused(t.Context()); !paused || err != nil {
		t.Errorf("paused %v, %v", paused, err)
	}
	contains(t, s.act(http.StatusOK, "resume"+job, "report <b>"), "from the next tick", "pause"+job)
	if paused, err := cronlock.Job(locks, "report <b>").Paused(t.Context()); paused || err != nil {
		t.Errorf("paused %v, %v", paused, err)
	}
	contains(t, s.act(http.StatusInternalServerError, "run-now"+job, "report <b>"), "no paper")
	run.Store(true)
	contains(t, s.act(http.StatusOK, "run-now"+job, "report <b>"), "The job was run", "success")
	contains(t, s.get(http.StatusOK, "job"+job), "failed", "web-1")
	s.get(http.StatusNotFound, "pause?name=none")
}

// TestRunNow: a run that lasts is not waited for, and its context ends with the page.
func TestRunNow(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	ended := make(chan error, 1)
	c := addJob(t, locks, "long", func(ctx context.Context) error {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	var audit audits
	log, text := logged()
	logger := newClient(t, server.Client(), core.WithLogger(log))
	s := newSite(t, logger, inspector.WithActions(asAda), inspector.WithCron(c), inspector.WithAudit(audit.record))
	contains(t, s.act(http.StatusOK, "run-now?name=long", "long"), "The run was requested", "running")
	if a := audit.last(t); !a.Pending || a.Err != nil || a.Refused {
		t.Errorf("audit %+v", a)
	}
	s.act(http.StatusConflict, "run-now?name=long", "long")
	if err := s.page.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the context had no cause")
	}
	elsewhere := newSite(t, locks, inspector.WithActions(asAda))
	lacks(t, elsewhere.get(http.StatusOK, "job?name=long"), "run-now")
	contains(t, elsewhere.get(http.StatusConflict, "run-now?name=long"), "cannot run jobs")
	contains(t, text.String(), "a run was requested", "a requested run has failed")
	lacks(t, text.String(), "an action was done")
}

// TestMissedTicks: ticks that no replica has claimed are counted on both pages.
func TestMissedTicks(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks)
	c := cron.New(cron.WithLocation(time.UTC))
	ran := make(chan struct{}, 100)
	_, err := cronlock.AddFunc(c, locks, "@every 1s", "heartbeat", func(context.Context) error {
		ran <- struct{}{}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	<-ran
	<-c.Stop().Done()
	var list struct {
		Jobs []struct {
			Missed int
			Last   time.Time `json:"missed_tick"`
		}
	}
	testkit.Eventually(t, patience, "a missed tick", func() bool {
		s.data("cron?sort=missed", &list)
		return len(list.Jobs) == 1 && list.Jobs[0].Missed > 0
	})
	if list.Jobs[0].Last.IsZero() {
		t.Error("the missed tick has no time")
	}
	contains(t, s.get(http.StatusOK, "cron"), `<span class="warn">`, "<small>last ")
	contains(t, s.get(http.StatusOK, "job?name=heartbeat"), `<dt>Missed ticks</dt><dd><span class="warn">`)
}
