package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
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
			if s.how == byOnce && attemptOf(first) != 1 || s.begun() != 1 || s.deferrals() != 0 {
				s.t.Errorf("attempt %d, %d runs, deferred %d times", attemptOf(first), s.begun(), s.deferrals())
			}
		},
		once: outcome{1, 1}, exclusive: outcome{1, 1}, baseline: outcome{1, 1},
	})
}

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
		once: outcome{1, 1}, exclusive: outcome{1, 1}, baseline: outcome{2, 2},
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

// TestLostAcknowledgement is case E: the handler has succeeded, but what asynq tells Redis of that is lost. asynq would
// try again, but by a context that it has cancelled before; so the task is taken for one whose worker is gone.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]asynq.Option{"done": nil, "complete": {asynq.Retention(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			play(t, story{
				tell: func(s *stage) { loseAcknowledgement(s, opts) },
				once: outcome{1, 1}, exclusive: outcome{2, 1}, baseline: outcome{2, 1},
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
		once: outcome{1, 1}, exclusive: outcome{1, 1}, baseline: outcome{2, 2},
	})
}

// TestStalledHeartbeat is case J: while a heartbeat hangs, a task fails and comes again. asynq's heartbeat learns of
// both at the same time, in any order; if it mistakes the end of the first run for the end of the second, nobody renews the
// lease of that any more, and the next recoverer takes it for lost while it runs. Other tasks whose ends come before
// make that order all but certain.
func TestStalledHeartbeat(t *testing.T) {
	play(t, story{
		tell: stallHeartbeat,
		once: outcome{1, 1}, exclusive: outcome{1, 1}, baseline: outcome{2, 2},
	})
}

func stallHeartbeat(s *stage) {
	const others = 20
	othersGo, failNow := newGate(), newGate()
	defer failNow.open()
	defer othersGo.open()
	s.handle = func(r *turn) error {
		switch {
		case r.thing != thing && r.thing != "companion":
			othersGo.wait()
		case r.thing == thing && r.number == 1:
			failNow.wait()
			return errors.New("it fails, and has done nothing")
		case r.number <= 2:
			r.await()
		}
		r.effect()
		return nil
	}
	heart := &heart{hangs: newGate(), free: newGate()}
	defer heart.free.open()
	pprof.Do(context.Background(), pprof.Labels("server", s.redis.Addr()), func(context.Context) {
		s.start(func(p *process) {
			p.cfg.Concurrency = others + 5
			p.cfg.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return 0 }
		}, tapped(heart.tap))
	})
	for i := range others {
		s.enqueue(receipt(fmt.Sprint("other", i)))
		s.turnOf(fmt.Sprint("other", i), 1)
	}
	s.enqueue(receipt("companion"))
	s.turnOf("companion", 1)
	info := s.enqueue(receipt(thing))
	s.turn(1)
	heart.stall.Store(true)
	s.awaitOpen(heart.hangs, "a heartbeat")
	othersGo.open()
	testkit.Eventually(s.t, within, "the others to be acknowledged", func() bool {
		queue, err := s.inspector.GetQueueInfo("default")
		return err == nil && queue.Active == 2
	})
	failNow.open()
	testkit.Eventually(s.t, within, "the task to come again, and to wait for the heartbeat too", func() bool {
		found, err := s.inspector.GetTaskInfo("default", info.ID)
		return err == nil && found.State == asynq.TaskStateActive && found.Retried == 1 && startWaits(s.redis.Addr())
	})
	heart.stall.Store(false)
	heart.free.open()
	running := s.turn(2)
	heart.skips(s, info.ID)
	s.expire("default", info.ID)
	s.start()
	s.again(3)
	if running.Err() != nil {
		s.t.Errorf("the handler was told: %v", running.Err())
	}
	s.finish()
}

// startWaits reports whether the loop of a server, which is labelled so, waits for its heartbeat to hear of a start.
// There is no other sign of it than the stack: no deeper call, as when it sends to a channel.
func startWaits(label string) bool {
	var stacks strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	for stack := range strings.SplitSeq(stacks.String(), "\n\n") {
		_, frames, labelled := strings.Cut(stack, label)
		_, frames, _ = strings.Cut(frames, "\n")
		top, _, _ := strings.Cut(frames, "\n")
		if labelled && strings.Contains(top, "asynq.(*processor).exec+") {
			return true
		}
	}
	return false
}

// heart is the heartbeat of a server for its tasks.
type heart struct {
	stall       atomic.Bool
	hangs, free gate

	mu   sync.Mutex
	last string // the tasks of the last beat
}

func (h *heart) tap(cmd redis.Cmder, send func() error) error {
	err := send()
	if !isExtendLease(cmd) {
		return err
	}
	if h.stall.Load() {
		h.hangs.open()
		h.free.wait()
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = fmt.Sprint(cmd.Args())
	return err
}

// skips waits for the next beat, which must leave out a task.
func (h *heart) skips(s *stage, id string) {
	s.t.Helper()
	h.mu.Lock()
	h.last = ""
	h.mu.Unlock()
	testkit.Eventually(s.t, within, "a heartbeat", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.last != ""
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.Contains(h.last, id) {
		s.t.Error("the heartbeat renews the lease of the second run")
	}
}

// TestPartition is case F: a worker is cut off, and another one gets its task. Behind a guard the first is told before
// that, when its own lease is over. What it has sent by then is refused where it arrives late, because the other one
// has a greater token. asynq itself would tell it after half a minute at the earliest.
func TestPartition(t *testing.T) {
	play(t, story{
		options: []asynqlock.Option{core.WithTTL(3 * time.Second)},
		tell:    partition,
		once:    outcome{1, 1}, exclusive: outcome{1, 1}, baseline: outcome{2, 2},
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
		if attempt := attemptOf(second); attempt != 2 {
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

// TestPartitionOfTheQueue is case F when only asynq is cut off: the guard's lease continues, so nobody else runs, and
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
		once: outcome{1, 1}, exclusive: outcome{2, 1}, baseline: outcome{2, 2},
	})
}

// TestCrash is case K: a worker is gone in the middle of a task. What comes of that depends on how far it was, and on
// what it had said. Nothing more is heard of it, which here is done by its connections; the effect is the same as of the
// process in which it ran.
func TestCrash(t *testing.T) {
	t.Parallel()
	atMostOnce := []asynqlock.Option{core.WithFailurePolicy(core.HoldFailures)}
	for name, told := range map[string]story{
		"before the effect": {
			tell: func(s *stage) { crash(s, noEffect, takeover) },
			once: outcome{1, 1}, baseline: outcome{1, 1},
		},
		"after the effect, which it declared": {
			tell: func(s *stage) { crash(s, effectAndComplete, nobodyRuns) },
			once: outcome{1, 1}, baseline: outcome{2, 1},
		},
		"after the effect, and it is found out": {
			options: atMostOnce,
			tell:    func(s *stage) { crash(s, effectOnly, resolve) },
			once:    outcome{1, 1}, baseline: outcome{2, 1},
		},
		"before the effect, and it is found out": {
			options: atMostOnce,
			tell:    func(s *stage) { crash(s, noEffect, forget) },
			once:    outcome{1, 1}, baseline: outcome{1, 1},
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
	if err := core.Complete(r); err != nil && r.stage.guarded() {
		r.stage.t.Errorf("Complete: %v", err)
	}
}

// takeover: the next run knows that it is the second, and has a greater token.
func takeover(s *stage, _ string) {
	first, second := s.turn(1), s.turn(2)
	if n := attemptOf(second); n != 2 || tokenOf(second) <= tokenOf(first) {
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
	guard := newOnce(s.t, s.locks, asynqlock.ByTaskID(), core.WithFailurePolicy(core.HoldFailures))
	seen, err := guard.Peek(context.Background(), info)
	if err == nil {
		err = guard.Resolve(context.Background(), seen, nil)
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
	guard := newOnce(s.t, s.locks, asynqlock.ByTaskID(), core.WithFailurePolicy(core.HoldFailures))
	seen, err := guard.Peek(context.Background(), info)
	if err == nil {
		err = guard.Forget(context.Background(), seen)
	}
	if err != nil {
		s.t.Error(err)
	}
	if err := s.inspector.RunTask("default", id); err != nil {
		s.t.Error(err)
	}
	s.turn(2)
}
