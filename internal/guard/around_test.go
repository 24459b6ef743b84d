package guard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var errNotNow = errors.New("not now")

// TestAroundRefusesWithoutRedis: what Around keeps from running does not run unguarded, so nobody is told that it does.
func TestAroundRefusesWithoutRedis(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{FailOpen: true, AskTimeout: 100 * time.Millisecond})
	d.server.Stop()
	run := guard.Run{Call: nothing, Around: func(_ context.Context, o *guard.Outcome, _ func(context.Context)) error {
		if o.Unguarded == nil {
			t.Error("granted")
		}
		return errNotNow
	}}
	if _, err := d.Do(t.Context(), ask, run); !errors.Is(err, errNotNow) {
		t.Error(err)
	}
	if len(d.incidents) > 0 || len(d.nots) != 1 {
		t.Errorf("%d incidents, %+v", len(d.incidents), d.nots)
	}
}

// TestLateRecordOutlivesItsWindow: the run began in time, so its record is written whenever Redis is back.
func TestLateRecordOutlivesItsWindow(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{FailOpen: true, AskTimeout: 100 * time.Millisecond})
	a := ask
	now := time.Now()
	a.Once = []core.OnceOption{core.WithWindow(now.Add(-time.Hour), now.Add(-time.Minute))}
	d.server.Stop()
	if o, err := d.Do(t.Context(), a, call(nothing)); err != nil || o.Unguarded == nil {
		t.Fatalf("%+v, %v", o, err)
	}
	d.incident(t, core.IncidentUnguarded)
	d.server.Start()
	testkit.Eventually(t, 20*time.Second, "the record", func() bool {
		r, err := d.Of(ask).Peek(t.Context())
		return err == nil && r.State == core.StateCompleted
	})
}

// TestLossOfALeaseOfAround: Judge says what the guard cannot know.
func TestLossOfALeaseOfAround(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{})
	run := call(nothing)
	run.Judge = func(o *guard.Outcome) { o.Verdict, o.Lost = guard.Completed, core.ErrLeaseLost }
	if o, err := d.Do(t.Context(), ask, run); err != nil || !errors.Is(o.Lost, core.ErrLeaseLost) {
		t.Errorf("%+v, %v", o, err)
	}
	if err := d.incident(t, core.IncidentLost); !errors.Is(err, core.ErrLeaseLost) {
		t.Error(err)
	}
}

// TestRunner: only Around and the context keep an item from running.
func TestRunner(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{})
	runner := guard.NewRunner("desk", seal.FactsOf(d.locks))
	run := call(func(ctx context.Context) {
		if guard.Degraded(ctx) {
			t.Error("degraded")
		}
	})
	if o, err := runner.Do(t.Context(), ask, run); err != nil || !o.Returned || o.Unguarded != nil {
		t.Errorf("%+v, %v", o, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errNotNow)
	if _, err := runner.Do(ctx, ask, run); !errors.Is(err, errNotNow) {
		t.Error(err)
	}
	run.Around = func(context.Context, *guard.Outcome, func(context.Context)) error { return errNotNow }
	if _, err := runner.Do(t.Context(), ask, run); !errors.Is(err, errNotNow) {
		t.Error(err)
	}
	if len(d.ends) != 1 || len(d.nots) != 2 || d.ends[0].Place != "desk" {
		t.Errorf("%+v, %+v", d.ends, d.nots)
	}
}
