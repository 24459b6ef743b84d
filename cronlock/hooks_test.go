package cronlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

type ctxKey struct{}

// TestHooksOfARun: the client's hooks get each run with its tick, and the context that RunStart returns is the context of
// the run.
func TestHooksOfARun(t *testing.T) {
	t.Parallel()
	tick := time.Now().Truncate(time.Second)
	failed := errors.New("no paper")
	for _, test := range []struct {
		name     string
		fn       func(context.Context) error
		opts     []cronlock.Option
		outcome  cronlock.Outcome
		state    core.State
		err      error
		panicked bool
	}{
		{"success", idle, nil, cronlock.Success, core.StateCompleted, nil, false},
		{"failure", func(context.Context) error { return failed }, nil, cronlock.Failed, core.StateCompleted, failed, false},
		{"panic", func(context.Context) error { panic("no paper") }, nil, cronlock.Panicked, core.StateCompleted, nil, true},
		{
			"timeout", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			[]cronlock.Option{cronlock.WithTimeout(10 * time.Millisecond)},
			cronlock.TimedOut, core.StateCompleted, cronlock.ErrTimeout, false,
		},
		{"released", core.Release, nil, cronlock.Success, core.StateNone, nil, false},
		{
			"held", func(ctx context.Context) error { return core.Hold(ctx, "ask ada") }, nil,
			cronlock.Success, core.StateUnknown, nil, false,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var starts []core.RunStart
			var ends []core.RunEnd
			var last cronlock.Run
			hash := ""
			locks := newClient(t, testkit.Start(t).Client(), core.WithHooks(core.Hooks{
				RunStart: func(ctx context.Context, start core.RunStart) context.Context {
					starts = append(starts, start)
					return context.WithValue(ctx, ctxKey{}, "traced")
				},
				RunEnd: func(ctx context.Context, end core.RunEnd) {
					ends = append(ends, end)
					last, _ = cronlock.RunFrom(ctx)
					if ctx.Err() != nil || ctx.Value(ctxKey{}) != "traced" {
						t.Error("RunEnd gets no live context with the values of the run")
					}
				},
			}))
			r := &replica{cron: cron.New(cron.WithChain(cron.Recover(cron.DiscardLogger))), locks: locks}
			var token int64
			r.add(t, after(time.Hour), func(ctx context.Context) error {
				token, _ = core.TokenFrom(ctx)
				hash = core.KeyHash(ctx)
				if ctx.Value(ctxKey{}) != "traced" {
					t.Error("the run has another context than RunStart returned")
				}
				return test.fn(ctx)
			}, test.opts...)
			r.fire(tick)
			if len(starts) != 1 || len(ends) != 1 {
				t.Fatalf("%d starts and %d ends", len(starts), len(ends))
			}
			work := core.Work{Place: "cron", Label: "job", Due: tick, KeyHash: hash}
			if s := starts[0]; s.Work != work || s.Token != token || s.Attempt != 1 || s.Waited <= 0 || hash == "" {
				t.Errorf("started %+v, want %+v with token %d", s, work, token)
			}
			e := ends[0]
			if e.Work != work || e.Token != token || e.Attempt != 1 || e.Took <= 0 || e.State != test.state || e.Panicked != test.panicked {
				t.Errorf("ended %+v, want %+v as %q", e, work, test.state)
			}
			if test.err == nil && e.Err != nil || !errors.Is(e.Err, test.err) {
				t.Errorf("ended with %v, want %v", e.Err, test.err)
			}
			if last.Outcome != test.outcome || last.Took <= 0 || !last.Tick.Equal(tick) {
				t.Errorf("RunEnd finds the run %+v, want %q", last, test.outcome)
			}
		})
	}
}

// TestHooksOfASkippedTick: NotRun has the reason and the error.
func TestHooksOfASkippedTick(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	tick := time.Now().Truncate(time.Second)
	newReplica(t, newClient(t, server.Client()), idle).fire(tick)
	other := newReplica(t, newClient(t, server.Client()), idle)
	other.fire(tick)
	other.expect(t, 0, cronlock.Taken)
	not := other.skips[0]
	if !errors.Is(not.Err, core.ErrCompleted) || not.Place != "cron" || not.Label != "job" || !not.Due.Equal(tick) || not.Waited <= 0 ||
		not.KeyHash == "" {
		t.Errorf("skipped %+v", not)
	}
}

// TestIncidents: what a run has less than a job promises.
func TestIncidents(t *testing.T) {
	t.Parallel()
	tick := time.Now().Truncate(time.Second)
	t.Run("unguarded", func(t *testing.T) {
		t.Parallel()
		server := testkit.Start(t)
		r := newReplica(t, newClient(t, server.Client()), idle, cronlock.FailOpen(), cronlock.WithStartDeadline(50*time.Millisecond))
		server.Kill()
		r.fire(time.Now())
		if errs := r.of(core.IncidentUnguarded); len(errs) != 1 || !errors.Is(errs[0], core.ErrUnavailable) {
			t.Errorf("reported %v", errs)
		}
		ran := 0
		cronlock.Exclusive(r.locks.Mutex, "other", cronlock.FailOpen())(cron.FuncJob(func() { ran++ })).Run()
		if errs := r.of(core.IncidentUnguarded); len(errs) != 2 || ran != 1 {
			t.Errorf("reported %v, ran %d times", errs, ran)
		}
	})
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		locks := newClient(t, testkit.Start(t).Client())
		r := newReplica(t, locks, func(ctx context.Context) error {
			if freed, err := locks.ForceUnlock(context.WithoutCancel(ctx), "cron:{job}"); !freed || err != nil {
				t.Errorf("%v, %v", freed, err)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}, core.WithTTL(500*time.Millisecond))
		r.fire(tick)
		if errs := r.of(core.IncidentLost); len(errs) != 1 || !errors.Is(errs[0], core.ErrLeaseLost) {
			t.Errorf("reported %v", errs)
		}
	})
	t.Run("unrecorded", func(t *testing.T) {
		t.Parallel()
		server := testkit.Start(t)
		var log logBuffer
		r := newReplica(t, newClient(t, server.Client(), logTo(&log)), func(context.Context) error {
			server.Kill()
			return nil
		})
		r.fire(tick)
		if errs := r.of(core.IncidentUnrecorded); len(errs) != 1 || !errors.Is(errs[0], core.ErrUnavailable) {
			t.Errorf("reported %v", errs)
		}
		if !strings.Contains(log.String(), "the end of the work could not be recorded") {
			t.Errorf("the client's log: %s", log.String())
		}
	})
}

// logBuffer is a buffer for a log that goroutines of a client write too.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

func (l *logBuffer) Len() int { return len(l.String()) }
