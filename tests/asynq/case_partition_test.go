package asynq_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestPartition is case F: a worker is cut off, and another one gets its task. Behind a guard the first is told before
// that, when its own lease is over. What it has sent by then is refused where it arrives late, because the other one
// has a greater token. asynq itself would tell it after half a minute at the earliest.
func TestPartition(t *testing.T) {
	play(t, story{
		options: []asynqlock.Option{asynqlock.WithTTL(3 * time.Second)},
		tell:    partition,
		once:    outcome{1, 1}, exclusive: outcome{1, 1}, control: outcome{2, 2},
	})
}

func partition(s *stage) {
	var bank sink
	told := newGate()
	var cause error
	s.handle = func(r *turn) error {
		token, _ := core.TokenFrom(r)
		if r.number == 1 && s.guarded() {
			<-r.Done()
			cause = context.Cause(r)
			told.open()
			r.end() // but what it has sent is still on its way
		}
		if r.number == 1 {
			r.await()
		}
		if err := bank.write(token); err != nil {
			return err
		}
		r.effect()
		return nil
	}
	relay := s.redis.Relay()
	defer relay.Heal()
	s.start(func(p *process) { p.queue, p.locks = relay.Client(), relay.Client() })
	info := s.enqueue(receipt(thing))
	first := s.turn(1)
	relay.Hold(testkit.Both)
	if s.guarded() {
		if s.awaitOpen(told, "the handler to be told"); !errors.Is(cause, core.ErrLeaseLost) {
			s.t.Errorf("the handler's context ended with %v", cause)
		}
	}
	s.expire("default", info.ID)
	s.start()
	second := s.turn(2)
	s.awaitEmpty()
	if first.asynq.Err() != nil {
		s.t.Error("asynq has told the handler too")
	}
	s.gate.open()
	testkit.Eventually(s.t, within, "the first write", func() bool { return bank.count() == 2 })
	if before, after := tokenOf(first), tokenOf(second); s.guarded() && before >= after {
		s.t.Errorf("token %d after %d", after, before)
	}
	if want := s.guarded(); bank.refused() != want {
		s.t.Errorf("a write was refused: %v", bank.refused())
	}
	if s.how == byOnce {
		if attempt := asynqlock.Attempt(second); attempt != 2 {
			s.t.Errorf("attempt %d", attempt)
		}
	}
}

func tokenOf(r *turn) int64 {
	token, _ := core.TokenFrom(r)
	return token
}

// sink is a resource that refuses whoever has a smaller token than somebody before. Without tokens it cannot.
type sink struct {
	mu      sync.Mutex
	token   int64
	writes  int
	refusal error
}

var errStaleWriter = errors.New("sink: somebody with a greater token was here")

func (k *sink) write(token int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writes++
	if token < k.token {
		k.refusal = errStaleWriter
		return errStaleWriter
	}
	k.token = token
	return nil
}

func (k *sink) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writes
}

func (k *sink) refused() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refusal != nil
}

// TestPartitionOfTheQueue is case F when only asynq is cut off: the guard's lease goes on, so nobody else runs, and
// what the handler did is recorded though asynq does not get to know.
func TestPartitionOfTheQueue(t *testing.T) {
	play(t, story{
		tell: func(s *stage) {
			s.handle = wonted
			relay := s.redis.Relay()
			defer relay.Heal()
			s.start(func(p *process) { p.queue = relay.Client() })
			info := s.enqueue(receipt(thing), asynq.MaxRetry(3))
			s.turn(1)
			relay.Hold(testkit.Both)
			s.expire("default", info.ID)
			s.start()
			s.again(2)
			s.finish()
		},
		once: outcome{1, 1}, exclusive: outcome{2, 1}, control: outcome{2, 2},
	})
}
