package asynq_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// runFive enqueues five tasks of a thing and waits until each has run, one at a time.
func (s *shop) runFive(thing string) {
	s.t.Helper()
	for range 5 {
		s.enqueue(receipt(thing))
	}
	testkit.Eventually(s.t, within, thing, func() bool {
		done, _ := s.effects.of(payloadOf(thing))
		return done == 5
	})
	s.effects.want(s.t, payloadOf(thing), 5, 1)
}

// TestLineIsLost: tasks run when the Redis client of the line is closed.
func TestLineIsLost(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var hooks told
	rdb := s.redis.Client()
	s.serve(s.work(nil), asynqlock.Exclusive(s.locks.Mutex, asynqlock.ByPayload("order"),
		asynqlock.WithLine(rdb), soon, asynqlock.WithHooks(hooks.hooks()), asynqlock.WithLogger(nil)))
	s.runFive("calm")
	s.awaitEmpty()
	testkit.Eventually(t, within, "the line to be gone", func() bool {
		return len(s.redis.Client().Keys(t.Context(), "asynqlock:*").Val()) == 0
	})
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
	s.runFive("closed")
	if !strings.Contains(hooks.String(), "line") {
		t.Error("the hook is not told that there is no line")
	}
}

// TestLineIsDeleted: tasks run when the key of their line is deleted while they stand in it.
func TestLineIsDeleted(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	free := make(chan struct{})
	s.serve(s.work(free), s.lineOf(soon))
	for range 5 {
		s.enqueue(receipt("7"))
	}
	rdb := s.redis.Client()
	testkit.Eventually(t, within, "all to stand in line", func() bool {
		keys := rdb.Keys(t.Context(), "asynqlock:line:*").Val()
		return len(keys) == 1 && rdb.ZCard(t.Context(), keys[0]).Val() == 5 &&
			rdb.Del(t.Context(), keys[0]).Val() == 1
	})
	close(free)
	s.awaitEmpty()
	s.effects.want(t, payloadOf("7"), 5, 1)
}

// panics is a hook of a go-redis client that panics once it is told to.
type panics struct{ on atomic.Bool }

func (p *panics) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *panics) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if p.on.Load() {
			panic("a hook of the application")
		}
		return next(ctx, cmd)
	}
}

func (p *panics) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestLineSurvivesItsClient: a client of the line that panics neither ends the process nor makes asynq run a task again.
func TestLineSurvivesItsClient(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var hook panics
	rdb := s.redis.Client()
	rdb.AddHook(&hook)
	free := make(chan struct{})
	s.serve(s.work(free), asynqlock.Exclusive(s.locks.Mutex, asynqlock.ByPayload("order"),
		asynqlock.WithLine(rdb), soon, asynqlock.WithLogger(nil)))
	for range 5 {
		s.enqueue(receipt("7"))
	}
	testkit.Eventually(t, within, "the first to run", func() bool {
		_, most := s.effects.of(payloadOf("7"))
		return most == 1
	})
	hook.on.Store(true) // the run that goes on calls the next ones when it ends
	close(free)
	s.awaitEmpty()
	s.effects.want(t, payloadOf("7"), 5, 1)
	s.runFive("panics")
	s.awaitEmpty()
}
