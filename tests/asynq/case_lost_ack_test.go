package asynq_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestLostAcknowledgement is case E: the handler has succeeded, but what asynq tells Redis of that is lost. asynq would
// try again, but by a context that it has cancelled before; so the task is taken for one whose worker is gone.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]asynq.Option{"done": nil, "complete": {asynq.Retention(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			play(t, story{
				tell: func(s *stage) { loseAcknowledgement(s, opts) },
				once: outcome{1, 1}, exclusive: outcome{2, 1}, control: outcome{2, 1},
			})
		})
	}
}

func loseAcknowledgement(s *stage, opts []asynq.Option) {
	var lost atomic.Int32
	s.start(tapped(func(cmd redis.Cmder, send func() error) error {
		if isDone(cmd) && lost.Add(1) == 1 {
			return errors.New("connection reset by peer")
		}
		return send()
	}))
	info := s.enqueue(receipt(thing), opts...)
	testkit.Eventually(s.t, within, "an acknowledgement to be lost", func() bool { return lost.Load() > 0 })
	s.expire("default", info.ID)
	s.start()
	s.finish()
	if s.how == byOnce && s.begun() != 1 {
		s.t.Errorf("%d runs", s.begun())
	}
	if burned := s.burned(); burned != 1 {
		s.t.Errorf("%d retries burned, want that of the recoverer", burned)
	}
}
