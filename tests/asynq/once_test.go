package asynq_test

import (
	"context"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// TestDuplicates: a producer enqueues the same twice. Without the guard, both run.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"guarded": 1, "control": 2} {
		s := newShop(t)
		var guards []asynq.MiddlewareFunc
		if name == "guarded" {
			guards = append(guards, asynqlock.Once(s.locks, asynqlock.ByPayload("order"), soon))
		}
		s.serve(func(context.Context, *asynq.Task) error {
			s.effects.begin("7")
			s.effects.end("7", true)
			return nil
		}, guards...)
		for range 2 {
			s.enqueue(receipt("7"))
		}
		s.awaitEmpty()
		if done, _ := s.effects.of("7"); done != want {
			t.Errorf("%s: done %d times, want %d", name, done, want)
		}
	}
}
