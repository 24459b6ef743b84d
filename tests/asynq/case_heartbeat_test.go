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

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestStalledHeartbeat is case J: while a heartbeat hangs, a task fails and comes again. asynq's heartbeat learns of
// both at the same time, in any order; if it takes the end of the first run for that of the second, nobody renews the
// lease of that any more, and the next recoverer takes it for lost while it runs. Other tasks whose ends come before
// make that order all but certain.
func TestStalledHeartbeat(t *testing.T) {
	play(t, story{
		tell: stallHeartbeat,
		once: outcome{1, 1}, exclusive: outcome{1, 1}, control: outcome{2, 2},
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
