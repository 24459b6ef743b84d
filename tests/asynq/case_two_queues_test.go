package asynq_test

import (
	"sync/atomic"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestOneIDInTwoQueues is case I: they are two tasks, but the heartbeat of a server that has both goes to one only. The
// other one is run again while it runs. To the guard they are two as well: each is done, once.
func TestOneIDInTwoQueues(t *testing.T) {
	play(t, story{
		about: "a",
		tell: func(s *stage) {
			both := func(p *process) { p.cfg.Queues = map[string]int{"a": 1, "b": 1} }
			s.handle = wonted
			var beaten atomic.Int32
			s.start(both, tapped(beats("b", &beaten)))
			for _, queue := range []string{"a", "b"} {
				s.enqueue(receipt(queue), asynq.TaskID("same"), asynq.Queue(queue))
				s.turnOf(queue, 1)
			}
			s.expire("a", "same")
			already := beaten.Load()
			testkit.Eventually(s.t, within, "a heartbeat", func() bool { return beaten.Load() > already })
			if !s.expired("a", "same") {
				s.t.Error("the heartbeat went to both")
			}
			s.start(both)
			s.again(2)
			s.gate.open()
			for _, queue := range []string{"a", "b"} {
				testkit.Eventually(s.t, within, "queue "+queue+" to be empty", func() bool {
					info, err := s.inspector.GetQueueInfo(queue)
					return err == nil && info.Size == 0
				})
			}
			s.effects.want(s.t, "b", 1, 1)
		},
		once: outcome{1, 1}, exclusive: outcome{1, 1}, control: outcome{2, 2},
	})
}
