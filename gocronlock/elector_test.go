package gocronlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestElector: of three schedulers, only the leader's runs jobs. When it stops leading, the next one does. Terms rise.
func TestElector(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	type ran struct {
		replica int
		term    int64
	}
	runs := make(chan ran, 1000)
	var replicas [3]*leader
	for i := range replicas {
		replicas[i] = newLeader(t, newClient(t, server.Client()).Election("scheduler"))
		s := newScheduler(t, gocron.WithDistributedElector(replicas[i]))
		_, err := s.NewJob(gocron.DurationJob(20*time.Millisecond), gocron.NewTask(replicas[i].Func(func(ctx context.Context) error {
			term, _ := core.TokenFrom(ctx)
			runs <- ran{i, term}
			return nil
		})))
		if err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[int]int64)
	for last := int64(0); len(seen) < len(replicas); {
		run := receive(t, runs, "a run of the leader")
		term, known := seen[run.replica]
		if known && term != run.term || run.term < last {
			t.Fatalf("replica %d ran in term %d after %v", run.replica, run.term, seen)
		}
		if !known {
			seen[run.replica], last = run.term, run.term
			if err := replicas[run.replica].stop(); err != nil {
				t.Errorf("Lead returned %v", err)
			}
		}
	}
}

// TestElectorLoss force-releases a leader's lock during a run. The context of the job ends, gocron gets the error, and
// the replica leads again only after the run.
func TestElectorLoss(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	l := newLeader(t, newClient(t, server.Client(), core.WithTTL(6*time.Second)).Election("scheduler"))
	l.awaitLead(t)
	long, told := newBlocking(), newEvents()
	job := addJob(t, newScheduler(t, gocron.WithDistributedElector(l)), l.Func(long.run), told.listeners())
	runNow(t, job)
	ctx := receive(t, long.running, "the run")
	forceUnlock(t, server.Client(), "scheduler")
	receive(t, ctx.Done(), "the end of leadership")
	if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLeaseLost) {
		t.Errorf("the context ends with %v", cause)
	}
	if err := l.IsLeader(t.Context()); !errors.Is(err, core.ErrNotLeader) {
		t.Errorf("a leader while an old run goes on: %v", err)
	}
	long.release <- nil
	told.expect(t, "failed", "lease lost")
	l.awaitLead(t)
}

// TestElectorGap: leadership ends after gocron has asked. The job does not run, and gocron gets the error.
func TestElectorGap(t *testing.T) {
	t.Parallel()
	l := newLeader(t, newClient(t, testkit.Start(t).Client()).Election("scheduler"))
	l.awaitLead(t)
	told := newEvents()
	job := addJob(t, newScheduler(t, gocron.WithDistributedElector(l)),
		l.Func(func(context.Context) error { t.Error("it runs"); return nil }), told.listeners(),
		gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { _ = l.stop() })))
	runNow(t, job)
	told.expect(t, "failed", "not the leader")
}

// TestElectorShutdown: the scheduler ends the contexts of its jobs, and so does the end of Lead, which waits for them.
func TestElectorShutdown(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	l := newLeader(t, locks.Election("scheduler"))
	l.awaitLead(t)
	long, told := newBlocking(), newEvents()
	s := newScheduler(t, gocron.WithDistributedElector(l))
	job := addJob(t, s, l.Func(long.run), told.listeners())
	runNow(t, job)
	ctx := receive(t, long.running, "the run")
	stopped := make(chan error, 1)
	go func() { stopped <- l.stop() }()
	receive(t, ctx.Done(), "the job to be told")
	next := newLeader(t, locks.Election("scheduler"))
	testkit.Eventually(t, patience, "the next candidate", func() bool {
		info, err := locks.Inspect(t.Context(), "scheduler")
		return err == nil && len(info.Queue) == 1
	})
	if err := next.IsLeader(t.Context()); err == nil {
		t.Error("the next leader does not wait for the job")
	}
	long.release <- nil
	told.expect(t, "ran")
	if err := receive(t, stopped, "the end of Lead"); err != nil {
		t.Errorf("Lead returned %v", err)
	}
	next.awaitLead(t)

	job = addJob(t, newScheduler(t, gocron.WithDistributedElector(next)), next.Func(long.run))
	runNow(t, job)
	ctx = receive(t, long.running, "the run")
	go func() { long.release <- context.Cause(ctx) }()
	if err := s.Shutdown(); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// TestElectorWithoutRedis: the leader runs jobs until its lease ends, and again when Redis is back.
func TestElectorWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	l := newLeader(t, newClient(t, server.Client(), core.WithTTL(5*time.Second)).Election("scheduler"))
	l.awaitLead(t)
	told := newEvents()
	job := addJob(t, newScheduler(t, gocron.WithDistributedElector(l)), l.Func(func(context.Context) error { return nil }),
		told.listeners())
	runNow(t, job)
	told.expect(t, "ran")
	server.Pause()
	testkit.Eventually(t, patience, "the end of leadership", func() bool { return l.IsLeader(t.Context()) != nil })
	runNow(t, job) // skipped, and gocron says nothing
	server.Resume()
	l.awaitLead(t)
	runNow(t, job)
	told.expect(t, "ran")
	if len(told) > 0 {
		t.Errorf("a job ran without leadership: %s", <-told)
	}
}

// TestElectorWarns of a replica that nothing makes a candidate, once.
func TestElectorWarns(t *testing.T) {
	t.Parallel()
	const line = "it does not lead, and has not called Lead"
	server := testkit.Start(t)
	var logged, quiet record
	elector := gocronlock.Elector(newClient(t, server.Client(), logged.logger()).Election("scheduler"))
	for range 2 {
		if err := elector.IsLeader(t.Context()); !errors.Is(err, core.ErrNotLeader) {
			t.Errorf("error %v", err)
		}
	}
	if n := logged.count(line); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
	first := newLeader(t, newClient(t, server.Client()).Election("scheduler"))
	first.awaitLead(t)
	second := newLeader(t, newClient(t, server.Client(), quiet.logger()).Election("scheduler"))
	testkit.Eventually(t, patience, "a candidate", func() bool {
		info, err := newClient(t, server.Client()).Inspect(t.Context(), "scheduler")
		return err == nil && len(info.Queue) == 1
	})
	if err := second.IsLeader(t.Context()); err == nil || quiet.count(line) > 0 {
		t.Errorf("a candidate is warned of, or leads: %v", err)
	}
}

// TestElectorRefuses what cannot be meant, as an error or a panic. Lead returns what ends a campaign.
func TestElectorRefuses(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	for want, e := range map[string]*core.Election{
		"election is nil": nil, "invalid name": locks.Election(""),
		"WithTTL": locks.Election("scheduler", core.WithTTL(-1)),
	} {
		if _, err := gocronlock.NewElector(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	newLeader(t, locks.Election("scheduler")).awaitLead(t)
	impatient := gocronlock.Elector(locks.Election("scheduler", core.WithWait(0)))
	if err := impatient.Lead(t.Context()); !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("Lead returned %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Elector does not panic")
		}
	}()
	gocronlock.Elector(nil)
}
