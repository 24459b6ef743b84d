package asynqlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestFinishWaitsForRedis: Redis is restarted just when a task has taken effect. It refuses connections meanwhile, so that
// the attempt gives up at once; the record is waited for all the same, for as long as was told.
func TestFinishWaitsForRedis(t *testing.T) {
	t.Parallel()
	s := newShop(t, redistest.AOF())
	inside, dead := make(chan struct{}), make(chan struct{})
	gaveUp, finished := make(chan error, 1), make(chan asynqlock.Finished, 1)
	failed := make(chan asynqlock.Failure, 1)
	locks := s.newLocks(core.WithLogger(nil), core.WithHooks(core.Hooks{
		AttemptEnd: func(_ context.Context, end core.AttemptEnd) { gaveUp <- end.Err },
	}))
	s.serve(func(context.Context, *asynq.Task) error {
		close(inside)
		<-dead
		return nil
	}, asynqlock.Once(locks, asynqlock.ByTaskID(), asynqlock.WithFinishTimeout(within), asynqlock.WithLogger(nil),
		asynqlock.WithHooks(asynqlock.Hooks{
			Failed:   func(_ context.Context, f asynqlock.Failure) { failed <- f },
			Finished: func(_ context.Context, f asynqlock.Finished) { finished <- f },
		})))
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
