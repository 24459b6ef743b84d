package asynq_test

import (
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestTwoRecoverers is case H: both find a task whose worker is gone. One is slow, and when it gives the task to
// somebody, it runs already because of the other. Nobody tells the handler.
func TestTwoRecoverers(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = wonted
			s.stray(receipt(thing))
			stalled := newGate()
			defer stalled.open()
			var listed atomic.Int32
			s.start(tapped(func(cmd redis.Cmder, send func() error) error {
				if isRetry(cmd) && listed.Add(1) == 1 {
					stalled.wait()
				}
				return send()
			}))
			testkit.Eventually(s.t, within, "a recoverer to stall", func() bool { return listed.Load() > 0 })
			s.start()
			first := s.turn(1)
			stalled.open()
			s.again(2)
			if first.Err() != nil {
				s.t.Errorf("the handler was told: %v", first.Err())
			}
			s.finish()
		},
		once: outcome{1, 1}, exclusive: outcome{1, 1}, control: outcome{2, 2},
	})
}
