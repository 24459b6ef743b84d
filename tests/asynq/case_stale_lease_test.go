package asynq_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestStaleLease is case G: a worker's clock is two minutes behind, and asynq counts leases by workers' clocks, so the
// next recoverer takes its tasks for lost. Nobody tells the handler.
func TestStaleLease(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = wonted
			s.start(tapped(behind(2 * time.Minute)))
			s.enqueue(receipt(thing))
			first := s.turn(1)
			s.start()
			s.again(2)
			if first.Err() != nil {
				s.t.Errorf("the handler was told: %v", first.Err())
			}
			s.finish()
		},
		once: outcome{1, 1}, exclusive: outcome{1, 1}, control: outcome{2, 2},
	})
}

// behind sets back the clock of a worker, as far as others can see it.
func behind(by time.Duration) tap {
	return func(cmd redis.Cmder, send func() error) error {
		args, seconds := cmd.Args(), int64(by/time.Second)
		switch {
		case isDequeue(cmd):
			const score = 3 + 4 // behind the keys
			args[score] = args[score].(int64) - seconds
		case isExtendLease(cmd):
			const first = 3 // behind the name, the key and XX
			for i := first; i < len(args); i += 2 {
				args[i] = args[i].(float64) - float64(seconds)
			}
		}
		return send()
	}
}
