package asynq_test

import (
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestLostTask is case R: Redis has given a task to a worker, but the reply is lost. It never ran, so no record is in
// the way when it comes again, though asynq counts a retry.
func TestLostTask(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			info := s.enqueue(receipt(thing))
			relay := s.redis.Relay()
			relay.LoseReplies(`redis.call("RPOPLPUSH"`, 1, testkit.Closed) // of asynq's script that takes a task
			s.start(func(p *process) { p.queue = relay.Client() })
			testkit.Eventually(s.t, within, "the reply to be lost", func() bool { return relay.LostReplies() == 1 })
			s.awaitState(info.ID, asynq.TaskStateActive)
			s.expire("default", info.ID)
			s.start()
			first := s.turn(1)
			s.finish()
			if n := s.burned(); n != 1 {
				s.t.Errorf("%d retries burned, want that of the recoverer", n)
			}
			if s.how == byOnce && asynqlock.Attempt(first) != 1 || s.begun() != 1 || s.deferrals() != 0 {
				s.t.Errorf("attempt %d, %d runs, deferred %d times", asynqlock.Attempt(first), s.begun(), s.deferrals())
			}
		},
		once: outcome{1, 1}, exclusive: outcome{1, 1}, control: outcome{1, 1},
	})
}
