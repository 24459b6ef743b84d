package hooks_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// valueHook sees the context of each command.
type valueHook struct {
	seen func(ctx context.Context, cmd redis.Cmder)
}

func (h valueHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h valueHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h valueHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.seen(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (h *panicHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if h.armed.Load() {
			panic("hook")
		}
		return err
	}
}

func (h *panicHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if h.armed.Load() {
			panic("hook")
		}
		return err
	}
}

// TestContextValuesReachTheConnection: tracing of the user's client finds its span in every call.
func TestContextValuesReachTheConnection(t *testing.T) {
	t.Parallel()
	type key struct{}
	rdb := testkit.Start(t).Client()
	rdb.AddHook(valueHook{func(ctx context.Context, cmd redis.Cmder) {
		if strings.HasPrefix(cmd.Name(), "eval") && ctx.Value(key{}) != "span" {
			t.Errorf("%s without the caller's values", cmd.Name())
		}
	}})
	ctx := context.WithValue(context.Background(), key{}, "span")
	lease := coretest.MustLockWith(t, ctx, coretest.NewClient(t, rdb, core.WithInstance("")).Mutex("name"))
	if err := lease.Extend(ctx, coretest.Long); err != nil {
		t.Error(err)
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
}

// TestPanicInRedisHook: a hook of the go-redis client that panics on a goroutine of holdfast ends the call, not
// the process, and nothing stays locked.
func TestPanicInRedisHook(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	hook := &panicHook{}
	rdb.AddHook(hook)
	locks := coretest.NewClient(t, rdb)
	hook.armed.Store(true)
	_, err := locks.Mutex("name").TryLock(context.Background())
	if err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("error %v does not tell of the panic", err)
	}
	hook.armed.Store(false)
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	testkit.Eventually(t, coretest.Within, "the first hold to be gone", func() bool {
		return server.Client().Exists(context.Background(), "lock:name").Val() == 0
	})
}

// TestRedlockPanicInRedisHook: the same with hooks of two of three clients. What their servers have granted is taken back.
func TestRedlockPanicInRedisHook(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	nodes, hook := three.Clients(), &panicHook{}
	for _, node := range nodes[:2] {
		node.AddHook(hook)
	}
	r := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, r.Mutex("name")))
	hook.armed.Store(true)
	_, err := r.Mutex("name").TryLock(context.Background())
	if err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("error %v does not tell of the panic", err)
	}
	hook.armed.Store(false)
	three.AwaitHolders(t, "lock:name", 0)
}

// panicHook panics after the command has run.
type panicHook struct{ armed atomic.Bool }

func (*panicHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// exitHook ends the goroutine by runtime.Goexit, as t.FailNow does, once, before or after a command that is sent alone.
type exitHook struct {
	panicHook
	before bool
}

func (h *exitHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.before && h.armed.CompareAndSwap(true, false) {
			runtime.Goexit()
		}
		err := next(ctx, cmd)
		if h.armed.CompareAndSwap(true, false) {
			runtime.Goexit()
		}
		return err
	}
}

// TestGoexitInRedisHook: a hook of the go-redis client that ends the goroutine of a caller leaves nothing locked, whether the lock was being
// taken or released.
func TestGoexitInRedisHook(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"before the command": true, "after the command": false} {
		for _, unlocking := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", unlocking ", unlocking), func(t *testing.T) {
				t.Parallel()
				server := testkit.Start(t)
				rdb, hook := server.Client(), &exitHook{before: before}
				rdb.AddHook(hook)
				locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance(""))
				mutex := locks.Mutex("name")
				testkit.Eventually(t, coretest.Within, "an exit of the caller's goroutine, and not of one that sends for many", func() bool {
					coretest.Unlock(t, coretest.MustLock(t, mutex)) // its answer opens the direct path
					returned := false
					var call sync.WaitGroup
					call.Go(func() {
						hook.armed.Store(!unlocking)
						lease, err := mutex.Lock(context.Background())
						hook.armed.Store(unlocking)
						if err == nil {
							_ = lease.Unlock(context.Background())
						}
						returned = true
					})
					call.Wait()
					hook.armed.Store(false)
					testkit.Eventually(t, coretest.Within, "the hold to be gone", func() bool {
						return server.Client().Exists(context.Background(), "lock:name").Val() == 0
					})
					return !returned
				})
				coretest.Unlock(t, coretest.MustLock(t, mutex))
			})
		}
	}
}
