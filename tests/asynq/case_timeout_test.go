package asynq_test

import (
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// TestTimeout is case A: at the deadline of a task asynq runs it again, on the same server, while the first handler
// goes on because it does not heed its context. Its lease goes on with it.
func TestTimeout(t *testing.T) {
	play(t, story{
		options: []asynqlock.Option{asynqlock.WithTTL(15 * time.Second)},
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
		once: outcome{1, 1}, exclusive: outcome{2, 1}, control: outcome{2, 2},
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
		once: outcome{1, 1}, exclusive: outcome{2, 1}, control: outcome{2, 1},
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
		once: outcome{1, 1}, control: outcome{2, 1},
	})
}
