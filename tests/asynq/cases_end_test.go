package asynq_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestTimeout is case A: at the deadline of a task asynq runs it again, on the same server, while the first handler
// continues because it does not heed its context. Its lease continues with it.
func TestTimeout(t *testing.T) {
	play(t, story{
		options: []asynqlock.Option{core.WithTTL(15 * time.Second)},
		tell: func(s *stage) {
			s.handle = wonted
			s.start()
			s.enqueue(receipt(thing), asynq.Timeout(time.Second))
			first := s.turn(1)
			s.again(2)
			if first.Err() == nil {
				s.t.Error("the handler was not told")
			}
			if s.how == byOnce {
				s.awaitRenewal()
			}
			s.finish()
		},
		once: outcome{1, 1}, exclusive: outcome{2, 1}, baseline: outcome{2, 2},
	})
}

// TestSuccessAfterTheDeadline is case B: what a handler returns then does not reach asynq any more.
func TestSuccessAfterTheDeadline(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = wonted
			info := s.enqueue(receipt(thing), asynq.Timeout(time.Second))
			s.start(leisurely)
			s.turn(1)
			s.awaitState(info.ID, asynq.TaskStateRetry)
			s.finish()
		},
		once: outcome{1, 1}, exclusive: outcome{2, 1}, baseline: outcome{2, 1},
	})
}

// TestSuccessAtTheDeadline is case B for a handler that heeds its context and ends well when that does: behind a guard,
// it ends in time for the acknowledgement.
func TestSuccessAtTheDeadline(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = func(r *turn) error {
				if r.number == 1 {
					<-r.Done()
					if !s.guarded() {
						r.await() // until asynq has seen it too, which is a matter of microseconds
					}
				}
				r.effect()
				return nil
			}
			info := s.enqueue(receipt(thing), asynq.Timeout(3*time.Second))
			s.start(leisurely)
			first := s.turn(1)
			if s.guarded() {
				handlers, _ := first.Deadline()
				if asynqs, _ := first.asynq.Deadline(); asynqs.Sub(handlers) < 100*time.Millisecond {
					s.t.Errorf("asynq gives up %v after the handler", asynqs.Sub(handlers))
				}
			} else {
				s.awaitState(info.ID, asynq.TaskStateRetry)
			}
			s.finish()
		},
		once: outcome{1, 1}, baseline: outcome{2, 1},
	})
}

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
			if s.how == byOnce && s.begun() == 2 && attemptOf(s.turn(2)) != 2 {
				s.t.Errorf("attempt %d", attemptOf(s.turn(2)))
			}
		}
	}
	for name, told := range map[string]story{
		"before the effect": {
			tell: tell(noEffect),
			once: outcome{1, 1}, exclusive: outcome{1, 1}, baseline: outcome{1, 1},
		},
		"after the effect, which it declared": {
			tell: tell(func(r *turn) {
				r.effect()
				if err := core.Complete(r); err != nil && r.stage.how == byOnce {
					r.stage.t.Errorf("Complete: %v", err)
				}
			}),
			once: outcome{1, 1}, exclusive: outcome{2, 1}, baseline: outcome{2, 1},
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, told) })
	}
}

// TestShutdown is case D: the time for a shutdown is over, and another server gets the task at once, while the first
// handler continues. That uses up no retry.
func TestShutdown(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = wonted
			stopping := s.start(hasty)
			s.enqueue(receipt(thing))
			s.turn(1)
			s.start()
			stopping.Shutdown()
			s.again(2)
			s.finish()
			if burned := s.burned(); burned != 0 {
				s.t.Errorf("%d retries burned", burned)
			}
		},
		once: outcome{1, 1}, exclusive: outcome{2, 1}, baseline: outcome{2, 2},
	})
}

// TestShutdownOfTheProcess is case D when the process ends soon after: it cannot wait for the handler, and does not let
// go of what that holds either. Nobody runs beside it as long as its lease lasts.
func TestShutdownOfTheProcess(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = wonted
			stopping := s.start(hasty)
			s.enqueue(receipt(thing))
			s.turn(1)
			stopping.Shutdown()
			over, cancel := context.WithCancel(context.Background())
			cancel()
			if err := s.runs.Drain(over); s.guarded() && !errors.Is(err, asynqlock.ErrStillRunning) {
				s.t.Errorf("Drain: %v", err)
			}
			s.start()
			s.again(2)
			s.finish()
		},
		once: outcome{1, 1}, baseline: outcome{2, 2},
	})
}

// TestShutdownInTime is case D as it should be: the handler ends within the time for a shutdown.
func TestShutdownInTime(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = wonted
			stopping := s.start(func(p *process) { p.cfg.ShutdownTimeout = within })
			s.enqueue(receipt(thing), asynq.MaxRetry(0))
			s.turn(1)
			down := make(chan struct{})
			go func() {
				defer close(down)
				stopping.Shutdown()
			}()
			s.gate.open()
			<-down
			s.start()
			s.finish()
			if n := s.begun(); n != 1 {
				s.t.Errorf("%d runs", n)
			}
		},
		once: outcome{1, 1}, exclusive: outcome{1, 1}, baseline: outcome{1, 1},
	})
}

// hasty gives handlers no time at a shutdown.
func hasty(p *process) { p.cfg.ShutdownTimeout = time.Millisecond }

// TestCancelledTask is case C: an operator cancels a task, and the handler continues. asynq runs it again.
func TestCancelledTask(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = wonted
			s.start()
			s.start()
			info := s.enqueue(receipt(thing))
			first := s.turn(1)
			testkit.Eventually(s.t, within, "asynq to cancel", func() bool { // it may not listen yet
				_ = s.inspector.CancelProcessing(info.ID)
				return first.asynq.Err() != nil
			})
			s.again(2)
			s.finish()
		},
		once: outcome{1, 1}, exclusive: outcome{2, 1}, baseline: outcome{2, 2},
	})
}

// TestCancelledBaseContext is case C: a server is told to stop, and tells its handlers, by BaseContext. One continues,
// while another server gets the task. Without Configure that burns a retry.
func TestCancelledBaseContext(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = wonted
			base, cancel := context.WithCancel(context.Background())
			defer cancel()
			first := s.start(func(p *process) {
				p.cfg.BaseContext = func() context.Context { return base }
			})
			s.enqueue(receipt(thing))
			s.turn(1)
			first.Stop()
			cancel()
			s.start()
			s.again(2)
			want := 1
			if s.guarded() {
				want = 0
			}
			if burned := s.burned(); burned != want {
				s.t.Errorf("%d retries burned, want %d", burned, want)
			}
			s.finish()
		},
		once: outcome{1, 1}, exclusive: outcome{2, 1}, baseline: outcome{2, 2},
	})
}

// TestCancelledHandlerStops is case C as it should be: the handler heeds its context and has done nothing, and its task
// runs again.
func TestCancelledHandlerStops(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = func(r *turn) error {
				if r.number == 1 {
					<-r.Done()
					return r.Err()
				}
				r.effect()
				return nil
			}
			s.start()
			info := s.enqueue(receipt(thing), asynq.MaxRetry(5))
			first := s.turn(1)
			testkit.Eventually(s.t, within, "asynq to cancel", func() bool {
				_ = s.inspector.CancelProcessing(info.ID)
				return first.asynq.Err() != nil
			})
			s.turn(2)
			s.finish()
			if n := s.begun(); n != 2 {
				s.t.Errorf("%d runs", n)
			}
		},
		once: outcome{1, 1}, exclusive: outcome{1, 1}, baseline: outcome{1, 1},
	})
}
