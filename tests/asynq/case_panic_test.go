package asynq_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// TestPanic is case P: the handler panics. asynq gets to see that, and runs the task again: at once, because nothing is
// in its way, or not at all, if it had said that it was done.
func TestPanic(t *testing.T) {
	t.Parallel()
	breakDown(t, time.Hour, func() { panic("broken") }, func(s *stage, told *atomic.Int32) {
		if n := told.Load(); n != 1 {
			s.t.Errorf("asynq told of %d panics", n)
		}
	})
}

// TestGoexit is case P for a handler that ends its goroutine, as t.FailNow does. asynq hears nothing of it until the
// deadline of the task.
func TestGoexit(t *testing.T) {
	t.Parallel()
	breakDown(t, 2*time.Second, runtime.Goexit, func(*stage, *atomic.Int32) {})
}

// breakDown lets the first handler of a task with a limit end by down, before and after its effect.
func breakDown(t *testing.T, limit time.Duration, down func(), check func(s *stage, panics *atomic.Int32)) {
	tell := func(before func(*turn)) func(*stage) {
		return func(s *stage) {
			s.handle = func(r *turn) error {
				if r.number == 1 {
					before(r)
					down()
				}
				r.effect()
				return nil
			}
			var panics atomic.Int32
			s.start(func(p *process) {
				p.cfg.ErrorHandler = asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
					if asynq.IsPanicError(err) {
						panics.Add(1)
					}
				})
			})
			s.enqueue(receipt(thing), asynq.Timeout(limit))
			s.turn(1)
			s.finish()
			check(s, &panics)
			if n := s.deferrals(); n != 0 {
				s.t.Errorf("deferred %d times because of nobody", n)
			}
			if s.how == byOnce && s.begun() == 2 && asynqlock.Attempt(s.turn(2)) != 2 {
				s.t.Errorf("attempt %d", asynqlock.Attempt(s.turn(2)))
			}
		}
	}
	for name, told := range map[string]story{
		"before the effect": {
			tell: tell(noEffect),
			once: outcome{1, 1}, exclusive: outcome{1, 1}, control: outcome{1, 1},
		},
		"after the effect, which it declared": {
			tell: tell(func(r *turn) {
				r.effect()
				if err := asynqlock.Complete(r); err != nil && r.stage.how == byOnce {
					r.stage.t.Errorf("Complete: %v", err)
				}
			}),
			once: outcome{1, 1}, exclusive: outcome{2, 1}, control: outcome{2, 1},
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, told) })
	}
}
