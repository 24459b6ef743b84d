package asynq_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestNoRetriesAtAll: duplicates of a task without retries wait for it instead of being archived.
func TestNoRetriesAtAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		guard func(s *shop) asynq.MiddlewareFunc
		done  int
	}{
		"once": {func(s *shop) asynq.MiddlewareFunc {
			return asynqlock.Once(s.locks, asynqlock.ByPayload("order"))
		}, 1},
		"exclusive": {func(s *shop) asynq.MiddlewareFunc {
			return asynqlock.Exclusive(s.locks.Mutex, asynqlock.ByPayload("order"))
		}, 3},
	} {
		s := newShop(t)
		free := make(chan struct{})
		release := sync.OnceFunc(func() { close(free) })
		defer release()
		s.serve(s.blocking(free), test.guard(s))
		for range 3 {
			s.awaitState(s.enqueue(receipt("7"), asynq.MaxRetry(0)).ID, asynq.TaskStateActive)
		}
		release()
		s.awaitEmpty()
		s.effects.want(t, "7", test.done, 1)
		if n := len(s.archived()); n != 0 {
			t.Errorf("%s: %d archived", name, n)
		}
	}
}

// TestLastRetry: a task that has used them up waits too, and one that has not is deferred at once.
func TestLastRetry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, cancel := context.WithTimeout(t.Context(), within) // there is always one
	defer cancel()
	guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"))
	busy := d.occupy(delivery("1"), receipt("7"), guard)
	almost := func(info *asynq.TaskInfo) { info.Retried = info.MaxRetry - 1 }
	wantDeferred(t, deliver(ctx, delivery("2", almost), receipt("7"), nothing, guard), core.ErrInProgress)
	waited := make(chan error)
	go func() { waited <- deliver(ctx, delivery("2", lastTry), receipt("7"), nothing, guard) }()
	select {
	case err := <-waited:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond): // it would be back by now, mostly
	}
	wantNil(t, busy.release())
	wantNil(t, <-waited)
}

// TestLastRetryEnds: a task that waits in vain says so before its deadline, while asynq still listens.
func TestLastRetryEnds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"))
	busy := d.occupy(delivery("1"), receipt("7"), guard)
	ctx := due{t.Context(), time.Now().Add(5 * time.Second)}
	wantDeferred(t, deliver(ctx, delivery("2", lastTry), receipt("7"), nothing, guard), core.ErrInProgress)
	wantNil(t, busy.release())
}

// TestLastRetryOutage: Redis of the locks is waited for as well; asynq has another one.
func TestLastRetryOutage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	other := testkit.Start(t)
	failed := make(chan error, 100)
	locks := clientOf(t, other.Client(), core.WithHooks(core.Hooks{
		BeginEnd: func(_ context.Context, end core.BeginEnd) { failed <- end.Err },
	}))
	other.Kill()
	s.serve(func(context.Context, *asynq.Task) error {
		s.effects.begin("7")
		s.effects.end("7", true)
		return nil
	}, asynqlock.Once(locks, asynqlock.ByTaskID()))
	s.enqueue(receipt("7"), asynq.MaxRetry(0))
	wantErrors(t, <-failed, core.ErrUnavailable)
	other.Restart()
	s.awaitEmpty()
	s.effects.want(t, "7", 1, 1)
	if n := len(s.archived()); n != 0 {
		t.Errorf("%d archived", n)
	}
}

// TestLastRetryFailOpen: a task that may run without Redis does not wait for it until there is no time left to run.
func TestLastRetryFailOpen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guards := []asynq.MiddlewareFunc{
		asynqlock.Once(d.locks, asynqlock.ByTaskID(), asynqlock.FailOpen()),
		asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID(), asynqlock.FailOpen()),
	}
	d.redis.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 2*within)
	defer cancel()
	ran := false
	wantNil(t, deliver(ctx, delivery("1", lastTry), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		ran = ctx.Err() == nil && asynqlock.Degraded(ctx)
		return nil
	}, guards...))
	if !ran {
		t.Error("it did not run in time")
	}
}
