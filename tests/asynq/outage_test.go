package asynq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestOutage: without Redis of the locks, tasks do not run, and burn no retry; asynq has another one.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	other := testkit.Start(t)
	locks := clientOf(t, other.Client())
	other.Kill()
	told := make(chan error, 100)
	s.serveWith(func(cfg *asynq.Config) {
		cfg.ErrorHandler = asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) { told <- err })
	}, func(context.Context, *asynq.Task) error {
		s.effects.begin("7")
		s.effects.end("7", true)
		return nil
	}, asynqlock.Once(locks, asynqlock.ByTaskID(), soon))
	id := s.enqueue(receipt("7"), asynq.MaxRetry(1)).ID
	for range 2 {
		wantDeferred(t, <-told, core.ErrUnavailable)
		if info := s.bounce(id); info.Retried != 0 {
			t.Errorf("retried %d times", info.Retried)
		}
	}
	other.Restart()
	s.awaitEmpty()
	s.effects.want(t, "7", 1, 1)
	if n := len(s.archived()); n != 0 {
		t.Errorf("%d archived", n)
	}
}

// TestOutageIsNotBusy: it is told apart from another task with the key.
func TestOutageIsNotBusy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	opts := []asynqlock.Option{core.WithWait(time.Millisecond)}
	d.redis.Kill()
	for name, guard := range d.guardsOf(opts...) {
		for range 2 {
			err := d.deliver(delivery(name), receipt("7"), nothing, guard)
			wantDeferred(t, err, core.ErrUnavailable)
			if errors.Is(err, core.ErrInProgress) || isFailure(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestFrozenRedis: nothing hangs for longer than asynq lets it.
func TestFrozenRedis(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.redis.Pause()
	for name, guard := range d.guardsOf(core.WithWait(time.Hour)) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := deliver(ctx, delivery(name), receipt("7"), func(context.Context, *asynq.Task) error {
			t.Errorf("%s: it runs", name)
			return nil
		}, guard)
		cancel()
		if err == nil || errors.Is(err, asynq.SkipRetry) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.redis.Resume()
}

// TestFailOpen: the task runs, says that it is unguarded, and hooks are told.
func TestFailOpen(t *testing.T) {
	t.Parallel()
	var log diary
	d, hooks := listening(t, core.WithLogger(log.logger()))
	d.redis.Kill()
	for name, guard := range d.guardsOf(asynqlock.FailOpen()) {
		ran := false
		err := d.deliver(delivery(name), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
			ran = true
			if _, ok := core.TokenFrom(ctx); ok || !asynqlock.Degraded(ctx) || (core.KeyHash(ctx) != "") != (name == "once") {
				t.Errorf("%s: %+v", name, factsOf(ctx))
			}
			if name == "once" {
				wantErrors(t, core.Complete(ctx), core.ErrUnavailable) // nobody to tell, but it counts
				wantNil(t, asynqlock.SetResult(ctx, []byte("x")))
			}
			return errOwn
		}, guard)
		if want := map[string]error{"exclusive": errOwn}[name]; err != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if !ran {
			t.Errorf("%s: it did not run", name)
		}
	}
	const line = `level=ERROR msg="holdfast: Redis could not be asked, the work runs unguarded" place=task label=` + kind + ` key_hash=`
	if n := strings.Count(log.String(), line); n != 2 {
		t.Errorf("%d lines: %s", n, log.String())
	}
	hooks.want(t, `core\.Incident .*Kind:unguarded Err:.*no answer from Redis`, 2)
	hooks.want(t, `core\.RunStart .*Token:0 Attempt:0`, 2)
	hooks.want(t, `core\.RunEnd .*Token:0 Attempt:0 State:(completed)? .*Err:a mistake of the task`, 2)
}

// TestCompletedDuringOutage: the task is acknowledged, and recorded when Redis is back.
func TestCompletedDuringOutage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.AOF())
	failures := make(chan core.Incident, 100)
	locks := clientOf(t, server.Client(), core.WithHooks(core.Hooks{
		Incident: func(_ context.Context, i core.Incident) { failures <- i },
	}))
	key, info := asynqlock.ByTaskID(), delivery("1", ofKind)
	guard := newOnce(t, locks, key, asynqlock.WithFinishTimeout(100*time.Millisecond))
	busy := occupy(t, t.Context(), info, receipt("7"), guard.Wrap)
	server.Kill()
	wantNil(t, busy.release())
	f := <-failures
	wantErrors(t, f.Err, core.ErrUnavailable)
	if f.Kind != core.IncidentUnrecorded || f.Label != kind || f.KeyHash == "" {
		t.Errorf("%+v", f)
	}
	server.Restart()
	testkit.Eventually(t, within, "the record", func() bool {
		r, err := guard.Peek(t.Context(), info)
		return err == nil && r.State == core.StateCompleted
	})
	wantNil(t, deliver(t.Context(), info, receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, guard.Wrap))
}

// TestDispositionDuringOutage: the handler hears of it, and the word counts all the same.
func TestDispositionDuringOutage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.AOF())
	locks := clientOf(t, server.Client())
	key, info := asynqlock.ByTaskID(), delivery("1", ofKind)
	guard := newOnce(t, locks, key)
	wantNil(t, deliver(t.Context(), info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		server.Kill()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		wantErrors(t, core.Complete(short), core.ErrUnavailable)
		server.Restart()
		return errOwn
	}, guard.Wrap))
	if r, err := guard.Peek(t.Context(), info); err != nil || r.State != core.StateCompleted {
		t.Errorf("%+v, %v", r, err)
	}
}
