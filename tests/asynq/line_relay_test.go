package asynq_test

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestLineGoesOnWithoutTheTasksThatWereCalled: a task that is called may never come to the guard. Those behind it are
// called nevertheless, long before their own delays are over.
func TestLineGoesOnWithoutTheTasksThatWereCalled(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"fails": errOwn, "archived": asynq.SkipRetry} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			free := make(chan struct{})
			blocks := func(next asynq.Handler) asynq.Handler {
				return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
					if id, _ := asynq.GetTaskID(ctx); id == "blocked" && isClosed(free) {
						return failure
					}
					return next.ProcessTask(ctx, task)
				})
			}
			s.serveWith(func(cfg *asynq.Config) {
				cfg.Concurrency = 2 // one waits in a worker, so one is called at a time
				cfg.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return time.Hour }
			}, s.work(free), blocks, s.lineOf(asynqlock.WithRetryIn(time.Hour)))
			s.standInLine("blocked", "next", "last")
			close(free)
			testkit.Eventually(t, within, "those behind it to run", func() bool {
				done, _ := s.effects.of(payloadOf("7"))
				return done == 4
			})
		})
	}
}

// standInLine lets a task run until it is freed and another one wait in a worker, and has others deferred behind them.
func (s *shop) standInLine(deferred ...string) {
	s.t.Helper()
	for _, id := range []string{"running", "waiting"} {
		s.enqueue(receipt("7"), asynq.TaskID(id))
		s.awaitState(id, asynq.TaskStateActive)
	}
	for _, id := range deferred {
		s.enqueue(receipt("7"), asynq.TaskID(id))
		s.awaitState(id, asynq.TaskStateRetry)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
