package core_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// witness counts the scripts, and waits for replicas, that a hook of the user's client sees.
type witness struct{ seen atomic.Int64 }

func (w *witness) see(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if name := cmd.Name(); name == "evalsha" || name == "wait" {
			w.seen.Add(1)
		}
	}
}

func (w *witness) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *witness) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.see(cmd)
		return next(ctx, cmd)
	}
}

func (w *witness) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		w.see(cmds...)
		return next(ctx, cmds)
	}
}

// TestHooksSeeLoneCommands: whichever way a command goes, hooks for traces and metrics see it.
func TestHooksSeeLoneCommands(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func() (context.Context, context.CancelFunc){
		"no end":      func() (context.Context, context.CancelFunc) { return context.Background(), func() {} },
		"cancellable": func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t).Client()
			first, second := new(witness), new(witness)
			rdb.AddHook(first)
			locks := newClient(t, rdb, core.WithLogger(nil))
			ctx, cancel := call()
			defer cancel()
			pair := func() { unlock(t, mustLockWith(t, ctx, locks.Mutex("name"))) }
			pair()
			before := first.seen.Load()
			const pairs = 50
			for range pairs {
				pair()
			}
			if seen := first.seen.Load() - before; seen < 2*pairs {
				t.Errorf("the hook has seen %d commands of %d", seen, 2*pairs)
			}
			rdb.AddHook(second)
			redistest.Eventually(t, within, "a hook to see commands that was added later", func() bool {
				pair()
				return second.seen.Load() > 0
			})
		})
	}
}

// TestHooksSeeWaitForReplicas: also commands that may take longer than the client's read timeout.
func TestHooksSeeWaitForReplicas(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	rdb, w := p.master.Client(), new(witness)
	rdb.AddHook(w)
	locks := newClient(t, rdb, core.WithTTL(long), core.WithReplicaAck(1, patient))
	unlock(t, mustLock(t, locks.Mutex("warm")))
	before, waits := w.seen.Load(), p.waits()
	unlock(t, mustLock(t, locks.Mutex("name")))
	if waited := p.waits() - waits; waited != 1 {
		t.Fatalf("waited %d times", waited)
	}
	if seen := w.seen.Load() - before; seen != 3 {
		t.Errorf("the hook has seen %d commands: no lock, wait and unlock", seen)
	}
}
