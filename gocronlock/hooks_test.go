package gocronlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// reports are the events that the hooks of a client get.
type reports struct {
	mu        sync.Mutex
	starts    []core.RunStart
	ends      []core.RunEnd
	skips     []core.NotRun
	incidents []core.Incident
}

type ctxKey struct{}

func (r *reports) hooks() core.Option {
	return core.WithHooks(core.Hooks{
		RunStart: func(ctx context.Context, start core.RunStart) context.Context {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.starts = append(r.starts, start)
			return context.WithValue(ctx, ctxKey{}, "traced")
		},
		RunEnd: func(_ context.Context, end core.RunEnd) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ends = append(r.ends, end)
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
	})
}

// TestLockerHooks: the client's hooks get the runs of Func, the runs that do not take place, and lost leases.
func TestLockerHooks(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	told, failed := new(reports), errors.New("no paper")
	locker := gocronlock.Locker(newClient(t, server.Client(), told.hooks()).Mutex, core.WithMinHold(0))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lock := take(t, ctx, locker)
	err := locker.Func(func(ctx context.Context) error {
		if ctx.Value(ctxKey{}) != "traced" {
			t.Error("the run has another context than RunStart returned")
		}
		return failed
	})(ctx)
	work := core.Work{Place: "cron", Label: "report"}
	if len(told.starts) != 1 || told.starts[0].Work != work || told.starts[0].Token == 0 {
		t.Errorf("started %+v", told.starts)
	}
	if e := told.ends; len(e) != 1 || e[0].Work != work || e[0].Err != failed || e[0].Token != told.starts[0].Token || e[0].Took <= 0 {
		t.Errorf("ended %+v after %v", e, err)
	}
	if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("locked twice: %v", err)
	}
	if s := told.skips; len(s) != 1 || s[0].Work != work || s[0].Reason != "overlapping" || !errors.Is(s[0].Err, core.ErrNotAcquired) {
		t.Errorf("skipped %+v", s)
	}
	forceUnlock(t, server.Client(), "gocron:report")
	if err := lock.Unlock(t.Context()); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("unlocked: %v", err)
	}
	if i := told.incidents; len(i) != 1 || i[0].Kind != core.IncidentLost || i[0].Label != "report" {
		t.Errorf("incidents %+v", i)
	}
}

// TestElectorHooks: the same for the jobs of a leader.
func TestElectorHooks(t *testing.T) {
	t.Parallel()
	told := new(reports)
	election := newClient(t, testkit.Start(t).Client(), told.hooks()).Election("scheduler", core.WithTTL(time.Second))
	job := gocronlock.Elector(election).Func(func(ctx context.Context) error {
		if ctx.Value(ctxKey{}) != "traced" {
			t.Error("the run has another context than RunStart returned")
		}
		return nil
	})
	if err := job(t.Context()); !errors.Is(err, core.ErrNotLeader) {
		t.Errorf("ran without a leader: %v", err)
	}
	if s := told.skips; len(s) != 1 || s[0].Label != "scheduler" || s[0].Reason != "not leader" || !errors.Is(s[0].Err, core.ErrNotLeader) {
		t.Errorf("skipped %+v", s)
	}
	newLeader(t, election).awaitLead(t)
	if err := job(t.Context()); err != nil {
		t.Error(err)
	}
	if len(told.starts) != 1 || len(told.ends) != 1 || told.ends[0].Panicked || told.starts[0].Token == 0 {
		t.Errorf("started %+v, ended %+v", told.starts, told.ends)
	}
}
