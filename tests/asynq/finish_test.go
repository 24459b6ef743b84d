package asynq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestFinishWaitsForRedis: Redis is restarted just when a task has taken effect. It refuses connections meanwhile, so
// that the attempt gives up at once; the record is waited for all the same, for as long as was told.
func TestFinishWaitsForRedis(t *testing.T) {
	t.Parallel()
	s := newShop(t, testkit.AOF())
	inside, dead := make(chan struct{}), make(chan struct{})
	gaveUp, finished := make(chan error, 100), make(chan core.RunEnd, 100)
	failed := make(chan core.Incident, 100)
	locks := s.newLocks(core.WithLogger(nil), core.WithHooks(core.Hooks{
		AttemptEnd: func(_ context.Context, end core.AttemptEnd) { gaveUp <- end.Err },
		Incident:   func(_ context.Context, i core.Incident) { failed <- i },
		RunEnd:     func(_ context.Context, end core.RunEnd) { finished <- end },
	}))
	s.serve(func(context.Context, *asynq.Task) error {
		close(inside)
		<-dead
		return nil
	}, asynqlock.Once(locks, asynqlock.ByTaskID(), asynqlock.WithFinishTimeout(within)))
	s.enqueue(receipt("7"))
	<-inside
	s.redis.Kill()
	close(dead)
	if err := <-gaveUp; !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("the attempt ended with %v, want no answer from Redis", err)
	}
	s.redis.Restart()
	select {
	case f := <-finished:
		if f.State != core.StateCompleted || f.Err != nil {
			t.Errorf("finished: %+v", f)
		}
	case f := <-failed:
		t.Errorf("failed: %+v, though Redis came back in time", f)
	}
}

// TestFinishFindsAnotherAttempt: Redis is out of reach of one server alone, for so long that a task of the key runs and
// completes on another one. The first run has been overtaken, and is told so, though the record says completed.
func TestFinishFindsAnotherAttempt(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	relay := s.redis.Relay()
	gaveUp, told := make(chan error, 100), make(chan core.Incident, 100)
	far := clientOf(t, relay.Client(), core.WithLogger(nil), core.WithHooks(core.Hooks{
		AttemptEnd: func(_ context.Context, end core.AttemptEnd) { gaveUp <- end.Err },
		Incident:   func(_ context.Context, i core.Incident) { told <- i },
	}))
	inside, cut := make(chan struct{}), make(chan struct{})
	overtaken := make(chan error, 1)
	go func() {
		overtaken <- processOne(t, far, "1", func(context.Context, *asynq.Task) error {
			close(inside)
			<-cut
			return nil
		})
	}()
	<-inside
	relay.Refuse(true)
	relay.Reset()
	close(cut)
	if err := <-gaveUp; !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("the attempt ended with %v, want no answer from Redis", err)
	}
	testkit.Eventually(t, within, "another task to run", func() bool {
		return processOne(t, s.locks, "2", func(context.Context, *asynq.Task) error { return nil }) == nil
	})
	relay.Heal()
	if err := <-overtaken; err != nil {
		t.Errorf("the first run ended with %v, want it acknowledged like the one that was recorded", err)
	}
	if f := <-told; f.Kind != core.IncidentLost || !errors.Is(f.Err, core.ErrStale) {
		t.Errorf("told of %+v, want that it was overtaken", f)
	}
}

// processOne runs a task of one key through a guard, as a server would.
func processOne(
	t *testing.T, locks *core.Client, id string, handler asynq.HandlerFunc,
) error {
	guard := asynqlock.Once(locks, asynqlock.ByPayload("order"), core.WithTTL(time.Second),
		asynqlock.WithFinishTimeout(within))
	ctx := asynqlock.ContextWithTask(t.Context(), &asynq.TaskInfo{ID: id, Queue: "default", MaxRetry: 1})
	return guard(handler).ProcessTask(ctx, receipt("7"))
}
