package asynq_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// facts are what a handler can learn of its guards.
type facts struct {
	attempt  int
	hash     string
	token    int64
	degraded bool
}

// attemptOf is the number of the attempt, 0 without a record.
func attemptOf(ctx context.Context) int {
	if a, ok := core.AttemptFrom(ctx); ok {
		return a.Number()
	}
	return 0
}

func factsOf(ctx context.Context) facts {
	token, _ := core.TokenFrom(ctx)
	return facts{attemptOf(ctx), core.KeyHash(ctx), token, asynqlock.Degraded(ctx)}
}

// look runs a task which notes the facts between two guards and behind both.
func (d *desk) look(id string, outer, inner asynq.MiddlewareFunc) (between, behind facts) {
	d.t.Helper()
	spy := func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			between = factsOf(ctx)
			return next.ProcessTask(ctx, t)
		})
	}
	wantNil(d.t, d.deliver(delivery(id), receipt(id), func(ctx context.Context, _ *asynq.Task) error {
		behind = factsOf(ctx)
		return nil
	}, outer, spy, inner))
	return between, behind
}

// TestNesting: in every order, the record's attempt and key are found, and the token of the innermost guard.
func TestNesting(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order := asynqlock.ByPayload("order")
	once, other := asynqlock.Once(d.locks, asynqlock.ByTaskID()), asynqlock.Once(d.locks, order)
	exclusive := asynqlock.Exclusive(d.locks.Mutex, order)

	between, behind := d.look("1", once, exclusive)
	if between.attempt != 1 || behind.attempt != 1 || between.hash != behind.hash || between.token == behind.token || behind.token == 0 {
		t.Errorf("Once, Exclusive: %+v, %+v", between, behind)
	}
	between, behind = d.look("2", exclusive, once)
	if between.attempt != 0 || behind.attempt != 1 || between.hash == behind.hash || between.token == behind.token || between.token == 0 {
		t.Errorf("Exclusive, Once: %+v, %+v", between, behind)
	}
	between, behind = d.look("3", once, other)
	if between.attempt != 1 || behind.attempt != 1 || between.hash == behind.hash || between.token == behind.token {
		t.Errorf("Once, another: %+v, %+v", between, behind)
	}
	between, behind = d.look("4", once, once)
	if between != behind || behind.attempt != 1 {
		t.Errorf("Once, the same: %+v, %+v", between, behind)
	}
	between, behind = d.look("5", exclusive, exclusive)
	if between.hash != "" || behind.hash != "" || behind.token == 0 {
		t.Errorf("Exclusive, the same: %+v, %+v", between, behind)
	}
}

// TestNestedRecords: a word is about the innermost record, and what it hides from others the outer ones hear of.
func TestNestedRecords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, order, info := asynqlock.ByTaskID(), asynqlock.ByPayload("order"), delivery("1", ofKind)
	guards := map[string]*asynqlock.Guard{"outer": newOnce(t, d.locks, id), "inner": newOnce(t, d.locks, order)}
	wantNil(t, d.deliver(info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		wantNil(t, core.Complete(ctx))
		return errOwn
	}, guards["outer"].Wrap, guards["inner"].Wrap))
	for name, guard := range guards {
		if r, err := guard.Peek(t.Context(), info); err != nil || r.State != core.StateCompleted {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestNestedPolicies: of two guards with one key, one of which holds failures, a failure is held by both.
func TestNestedPolicies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order := asynqlock.ByPayload("order")
	retries, holds := asynqlock.Once(d.locks, order), asynqlock.Once(d.locks, order, core.WithFailurePolicy(core.HoldFailures))
	for name, guards := range map[string][]asynq.MiddlewareFunc{"inside": {retries, holds}, "outside": {holds, retries}} {
		wantErrors(t, d.deliver(delivery("1"), receipt(name), fails(errOwn), guards...), errOwn, core.ErrOutcomeUnknown, asynq.SkipRetry)
		wantErrors(t, d.deliver(delivery("1"), receipt(name), mustNotRun(t, name), retries), core.ErrOutcomeUnknown)
	}
}

// TestNestedDeferral: a task that the inner guard defers leaves the outer record free, and has one attempt more.
func TestNestedDeferral(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guards := []asynq.MiddlewareFunc{
		asynqlock.Once(d.locks, asynqlock.ByTaskID()), asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByPayload("order")),
	}
	busy := d.occupy(delivery("1"), receipt("7"), guards...)
	for range 2 {
		wantDeferred(t, d.deliver(delivery("2"), receipt("7"), nothing, guards...), core.ErrNotAcquired)
	}
	wantNil(t, busy.release())
	wantNil(t, d.deliver(delivery("2"), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		if n := attemptOf(ctx); n != 3 {
			t.Errorf("attempt %d", n)
		}
		return nil
	}, guards...))
}

// TestDuplicateInsideAPeriod: a late duplicate of yesterday's task takes the place of today's if the guard of the period is
// outside. Behind the guard of the task's ID it does not reach the period.
func TestDuplicateInsideAPeriod(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, periodOutside := range map[string]bool{"period outside": true, "ID outside": false} {
		day := name + " 1"
		daily := asynqlock.Once(d.locks, func(context.Context, *asynq.Task) (string, error) { return day, nil })
		guards := []asynq.MiddlewareFunc{asynqlock.Once(d.locks, asynqlock.ByTaskID()), daily}
		if periodOutside {
			slices.Reverse(guards)
		}
		var ran []string
		deliver := func(id string) {
			t.Helper()
			wantNil(t, d.deliver(delivery(id), receipt("7"), func(context.Context, *asynq.Task) error {
				ran = append(ran, id)
				return nil
			}, guards...))
		}
		yesterdays, todays := name+" yesterday", name+" today"
		deliver(yesterdays)
		day = name + " 2"
		deliver(yesterdays)
		deliver(todays)
		want := []string{yesterdays, todays}
		if periodOutside {
			want = want[:1]
		}
		if !slices.Equal(ran, want) {
			t.Errorf("%s: ran %q, want %q", name, ran, want)
		}
	}
}

// TestDegraded: any guard that has no Redis makes the task an unguarded one; the others still say what they know.
func TestDegraded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	gone := testkit.Start(t)
	locks := clientOf(t, gone.Client())
	gone.Kill()
	open := asynqlock.FailOpen()
	for name, test := range map[string]struct {
		outer, inner      asynq.MiddlewareFunc
		between, degraded bool
		attempt           int
	}{
		"none":  {asynqlock.Once(d.locks, asynqlock.ByTaskID(), open), asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID(), open), false, false, 1},
		"inner": {asynqlock.Once(d.locks, asynqlock.ByTaskID()), asynqlock.Exclusive(locks.Mutex, asynqlock.ByTaskID(), open), false, true, 1},
		"outer": {asynqlock.Exclusive(locks.Mutex, asynqlock.ByTaskID(), open), asynqlock.Once(d.locks, asynqlock.ByTaskID()), true, true, 1},
		"both":  {asynqlock.Once(locks, asynqlock.ByTaskID(), open), asynqlock.Exclusive(locks.Mutex, asynqlock.ByTaskID(), open), true, true, 0},
	} {
		between, behind := d.look(name, test.outer, test.inner)
		if between.degraded != test.between || behind.degraded != test.degraded || behind.attempt != test.attempt {
			t.Errorf("%s: %s", name, fmt.Sprintf("%+v, %+v", between, behind))
		}
	}
}
