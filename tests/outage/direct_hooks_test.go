package outage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

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
			first, second := new(coretest.Witness), new(coretest.Witness)
			rdb.AddHook(first)
			locks := coretest.NewClient(t, rdb, core.WithLogger(nil))
			ctx, cancel := call()
			defer cancel()
			pair := func() { coretest.Unlock(t, coretest.MustLockWith(t, ctx, locks.Mutex("name"))) }
			pair()
			before := first.Seen.Load()
			const pairs = 50
			for range pairs {
				pair()
			}
			if seen := first.Seen.Load() - before; seen < 2*pairs {
				t.Errorf("the hook has seen %d commands of %d", seen, 2*pairs)
			}
			rdb.AddHook(second)
			testkit.Eventually(t, coretest.Within, "a hook to see commands that was added later", func() bool {
				pair()
				return second.Seen.Load() > 0
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
			rdb := testkit.Start(t).Client(func(o *redis.Options) { o.PoolSize = 3 }) // too few to keep one, so each command asks for one
			rdb.AddHook(o)
			locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance(""))
			coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name"))) // the server knows the scripts now
			for range 3 {
				o.kept, o.again = "", 0
				testkit.Eventually(t, coretest.Within, "an answer on the direct path", func() bool {
					o.armed = o.kept == ""
					coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
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
	p := coretest.StartReplicated(t)
	rdb, w := p.Master.Client(), new(coretest.Witness)
	rdb.AddHook(w)
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithReplicaAck(1, coretest.Ample), core.WithInstance(""))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	before, waits := w.Seen.Load(), p.Waits()
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	if waited := p.Waits() - waits; waited != 1 {
		t.Fatalf("waited %d times", waited)
	}
	if seen := w.Seen.Load() - before; seen != 3 {
		t.Errorf("the hook has seen %d commands: no lock, wait and unlock", seen)
	}
}
