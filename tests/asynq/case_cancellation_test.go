package asynq_test

import (
	"context"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestCancelledTask is case C: an operator cancels a task, and the handler goes on. asynq runs it again.
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
		once: outcome{1, 1}, exclusive: outcome{2, 1}, control: outcome{2, 2},
	})
}

// TestCancelledBaseContext is case C: a server is told to stop, and tells its handlers, by BaseContext. One goes on,
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
		once: outcome{1, 1}, exclusive: outcome{2, 1}, control: outcome{2, 2},
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
		once: outcome{1, 1}, exclusive: outcome{1, 1}, control: outcome{1, 1},
	})
}
