package core_test

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRepetitionsAreReplicated repeats each command for which replicas are waited, on another connection. A command that
// has succeeded must write again: WAIT waits for the last write of its own connection, and would find nothing to wait for.
func TestRepetitionsAreReplicated(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	rdb := p.Master.Client()
	r := &repeater{t: t, p: p, rdb: p.Master.Client()}
	rdb.AddHook(r)
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithReplicaAck(1, coretest.Ample))
	for kind, lock := range coretest.Locks(locks) {
		r.during(kind)
		lease := coretest.MustLock(t, lock)
		inner := coretest.MustLockWith(t, lease.Context(), lock)
		coretest.WantErr(t, inner.Extend(context.Background(), 2*coretest.Long), nil)
		coretest.Unlock(t, inner)
		coretest.Unlock(t, lease)
	}
	r.during("Multi")
	coretest.Unlock(t, coretest.MustLock(t, core.Multi(locks.Mutex("a"), locks.Fair("b"), locks.Read("c"), locks.Semaphore("d", 2))))
	ctx := context.Background()
	for what, end := range map[string]func(*core.Attempt) error{
		"complete": func(a *core.Attempt) error { return a.Complete(ctx, nil) },
		"hold":     func(a *core.Attempt) error { return a.Hold(ctx, "") },
		"release":  func(a *core.Attempt) error { return a.Release(ctx) },
		"withdraw": func(a *core.Attempt) error { return seal.AttemptOf(a).Withdraw(ctx) },
		"declare":  func(a *core.Attempt) error { return a.Declare(ctx, core.StateUnknown) },
	} {
		r.during(what)
		once := locks.Once("{group}:"+what, core.WithQuota(10))
		coretest.WantErr(t, end(coretest.MustBegin(t, once)), nil)
		r.during("forget after " + what)
		coretest.WantErr(t, coretest.ForgetNow(ctx, once), nil)
		r.during("resolve after " + what)
		coretest.WantErr(t, coretest.ResolveNow(ctx, once, nil), nil)
	}
	if r.repeated < 20 {
		t.Errorf("only %d commands were repeated", r.repeated)
	}
}

// repeater is a hook that repeats the scripts in front of a WAIT.
type repeater struct {
	t   *testing.T
	p   *coretest.Replicated
	rdb *redis.Client

	mu       sync.Mutex
	kind     string
	repeated int
}

func (r *repeater) during(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kind = kind
}

func (r *repeater) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *repeater) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *repeater) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if cmds[len(cmds)-1].Name() == "wait" {
			for _, c := range cmds[:len(cmds)-1] {
				r.repeat(ctx, c)
			}
		}
		return err
	}
}

func (r *repeater) repeat(ctx context.Context, c redis.Cmder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	script, ok := c.(interface{ Val() any })
	if !ok || c.Err() != nil || !transport.Succeeded(script.Val()) {
		return
	}
	before := r.p.Master.Info("persistence", "rdb_changes_since_last_save")
	again := r.rdb.Do(ctx, c.Args()...)
	if !transport.Succeeded(again.Val()) {
		return
	}
	r.repeated++
	if after := r.p.Master.Info("persistence", "rdb_changes_since_last_save"); after == before {
		r.t.Errorf("%s: the repetition of a script on %s has written nothing", r.kind, c.Args()[3])
	}
}
