package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
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
			rdb := testkit.Start(t).Client()
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
			testkit.Eventually(t, within, "a hook to see commands that was added later", func() bool {
				pair()
				return second.seen.Load() > 0
			})
		})
	}
}

// overdue is a hook that keeps one command, on the direct path, until that has no more time for a connection: before it is
// sent, or when it is answered.
type overdue struct {
	after bool
	armed bool
	kept  string // the command, once it is; "" if it was not answered though it was sent
	again int    // how often it was seen after that
}

func (o *overdue) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *overdue) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd) // at any time
		}
		args := fmt.Sprint(cmd.Args())
		if args == o.kept {
			o.again++
		}
		if !o.armed || ctx.Done() == nil { // the caller's context has no end
			return next(ctx, cmd)
		}
		o.armed = false
		if !o.after {
			<-ctx.Done()
		}
		err := next(ctx, cmd)
		if !o.after || err == nil {
			o.kept = args
		}
		<-ctx.Done()
		return err
	}
}

func (o *overdue) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestOverdueOnTheShortWay: a command that found no connection in time is sent again, one that did and was answered
// counts, and neither is in the way of the next.
func TestOverdueOnTheShortWay(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before it is sent": false, "when it is answered": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &overdue{after: after}
			rdb := testkit.Start(t).Client()
			rdb.AddHook(o)
			locks := newClient(t, rdb, core.WithTTL(long), core.WithInstance(""))
			unlock(t, mustLock(t, locks.Mutex("name"))) // the server knows the scripts now
			for range 3 {
				o.kept, o.again = "", 0
				testkit.Eventually(t, within, "an answer on the direct path", func() bool {
					o.armed = o.kept == ""
					unlock(t, mustLock(t, locks.Mutex("name")))
					return o.kept != ""
				})
				if again := o.again > 0; again == after {
					t.Errorf("seen %d times more", o.again)
				}
			}
		})
	}
}

// TestHooksSeeWaitForReplicas: also commands that may take longer than the client's read timeout.
func TestHooksSeeWaitForReplicas(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	rdb, w := p.master.Client(), new(witness)
	rdb.AddHook(w)
	locks := newClient(t, rdb, core.WithTTL(long), core.WithReplicaAck(1, ample), core.WithInstance(""))
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
