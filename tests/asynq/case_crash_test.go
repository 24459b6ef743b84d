package asynq_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestCrash is case K: a worker is gone in the middle of a task. What comes of that depends on how far it was, and on
// what it had said. Nothing more is heard of it, which here is done by its connections; the effect is that of the
// process in which it ran.
func TestCrash(t *testing.T) {
	t.Parallel()
	atMostOnce := []asynqlock.Option{asynqlock.AtMostOnce()}
	for name, told := range map[string]story{
		"before the effect": {
			tell: func(s *stage) { crash(s, noEffect, takeover) },
			once: outcome{1, 1}, control: outcome{1, 1},
		},
		"after the effect, which it declared": {
			tell: func(s *stage) { crash(s, effectAndComplete, nobodyRuns) },
			once: outcome{1, 1}, control: outcome{2, 1},
		},
		"after the effect, and it is found out": {
			options: atMostOnce,
			tell:    func(s *stage) { crash(s, effectOnly, resolve) },
			once:    outcome{1, 1}, control: outcome{2, 1},
		},
		"before the effect, and it is found out": {
			options: atMostOnce,
			tell:    func(s *stage) { crash(s, noEffect, forget) },
			once:    outcome{1, 1}, control: outcome{1, 1},
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, told) })
	}
}

// crash lets a worker die in its first run after it has done something, starts another one, and looks at what the guard
// does.
func crash(s *stage, before func(r *turn), after func(s *stage, id string)) {
	dead := newGate()
	s.handle = func(r *turn) error {
		if r.number > 1 {
			r.effect()
			return nil
		}
		before(r)
		r.end()
		dead.open()
		r.await()
		return errors.New("nobody hears this")
	}
	relay := s.redis.Relay()
	defer relay.Heal()
	s.start(func(p *process) { p.queue, p.locks = relay.Client(), relay.Client() })
	info := s.enqueue(receipt(thing))
	s.awaitOpen(dead, "the first run to end")
	relay.Hold(testkit.Both)
	s.expire("default", info.ID)
	if s.guarded() {
		s.lapse()
	}
	s.start()
	if s.guarded() {
		after(s, info.ID)
	}
	s.awaitEmpty()
	if n := len(s.archived()); n != 0 {
		s.t.Errorf("%d tasks are archived", n)
	}
}

// lapse lets the lease of the only record have ended.
func (s *stage) lapse() {
	s.t.Helper()
	ctx, rdb := context.Background(), s.redis.Client()
	if !rdb.HExists(ctx, s.record(), "ttl").Val() {
		s.t.Error("the record had no lease")
	}
	rdb.HSet(ctx, s.record(), "deadline", 0)
}

func noEffect(*turn) {}

func effectOnly(r *turn) { r.effect() }

func effectAndComplete(r *turn) {
	r.effect()
	if err := asynqlock.Complete(r); err != nil && r.stage.guarded() {
		r.stage.t.Errorf("Complete: %v", err)
	}
}

// takeover: the next run knows that it is the second, and has a greater token.
func takeover(s *stage, _ string) {
	first, second := s.turn(1), s.turn(2)
	if n := asynqlock.Attempt(second); n != 2 || tokenOf(second) <= tokenOf(first) {
		s.t.Errorf("attempt %d, token %d after %d", n, tokenOf(second), tokenOf(first))
	}
}

// nobodyRuns: the task is acknowledged.
func nobodyRuns(s *stage, _ string) {
	s.awaitEmpty()
	if n := s.begun(); n != 1 {
		s.t.Errorf("%d runs", n)
	}
}

// unknown waits for the task in the archive, where it is until somebody finds out.
func unknown(s *stage, id string) {
	s.t.Helper()
	testkit.Eventually(s.t, within, "the task to be archived", func() bool { return len(s.archived()) == 1 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.away) != 1 || !errors.Is(s.away[0], core.ErrOutcomeUnknown) {
		s.t.Errorf("%s was turned away for %v", id, s.away)
	}
}

// resolve: somebody finds out that it took effect, and the task is acknowledged.
func resolve(s *stage, id string) {
	unknown(s, id)
	info, err := s.inspector.GetTaskInfo("default", id)
	if err != nil {
		s.t.Fatal(err)
	}
	seen, err := asynqlock.Peek(context.Background(), s.locks, asynqlock.ByTaskID(), info, asynqlock.AtMostOnce())
	if err == nil {
		err = asynqlock.Resolve(context.Background(), s.locks, asynqlock.ByTaskID(), info, seen, nil, asynqlock.AtMostOnce())
	}
	if err != nil {
		s.t.Error(err)
	}
	if err := s.inspector.RunTask("default", id); err != nil {
		s.t.Error(err)
	}
	nobodyRuns(s, id)
}

// forget: somebody finds out that it took none, and the task runs.
func forget(s *stage, id string) {
	unknown(s, id)
	info, err := s.inspector.GetTaskInfo("default", id)
	if err != nil {
		s.t.Fatal(err)
	}
	seen, err := asynqlock.Peek(context.Background(), s.locks, asynqlock.ByTaskID(), info)
	if err == nil {
		err = asynqlock.Forget(context.Background(), s.locks, asynqlock.ByTaskID(), info, seen)
	}
	if err != nil {
		s.t.Error(err)
	}
	if err := s.inspector.RunTask("default", id); err != nil {
		s.t.Error(err)
	}
	s.turn(2)
}
