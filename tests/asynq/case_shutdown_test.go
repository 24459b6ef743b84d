package asynq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// TestShutdown is case D: the time for a shutdown is over, and another server gets the task at once, while the first
// handler goes on. That burns no retry.
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
			if list := s.runs.List(); s.guarded() && (len(list) != 1 || !list[0].Zombie) {
				s.t.Errorf("runs: %+v", list)
			}
			s.finish()
			if burned := s.burned(); burned != 0 {
				s.t.Errorf("%d retries burned", burned)
			}
		},
		once: outcome{1, 1}, exclusive: outcome{2, 1}, control: outcome{2, 2},
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
		once: outcome{1, 1}, control: outcome{2, 2},
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
		once: outcome{1, 1}, exclusive: outcome{1, 1}, control: outcome{1, 1},
	})
}

// hasty gives handlers no time at a shutdown.
func hasty(p *process) { p.cfg.ShutdownTimeout = time.Millisecond }
