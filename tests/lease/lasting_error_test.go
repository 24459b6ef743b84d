package lease_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// scriptCount counts the scripts that a client sends.
type scriptCount struct{ n atomic.Int64 }

func (*scriptCount) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *scriptCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *scriptCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if cmd.Name() == "evalsha" {
				c.n.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

// TestLastingErrorIsNotRepeated: the caller of an end that meets an error which waiting does not mend gets it at once. Only the
// background sends the end again.
func TestLastingErrorIsNotRepeated(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb, sent := server.Client(), new(scriptCount)
	rdb.AddHook(sent)
	locks, err := core.New(rdb, core.WithTTL(coretest.Long), core.WithLogger(nil))
	coretest.WantErr(t, err, nil)
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	if err := coretest.MustBegin(t, locks.Once("warm")).Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	lease, attempt := coretest.MustLock(t, locks.Mutex("lock")), coretest.MustBegin(t, locks.Once("once"))
	for _, key := range server.Client().Keys(t.Context(), "*").Val() {
		server.Client().Del(t.Context(), key)
		server.Client().RPush(t.Context(), key, "not a lock")
	}
	sent.n.Store(0)
	coretest.WantErr(t, lease.Unlock(t.Context()), core.ErrWrongType)
	coretest.WantErr(t, attempt.Complete(t.Context(), nil), core.ErrWrongType)
	_ = locks.Close()              // which waits for the background
	if n := sent.n.Load(); n > 5 { // three in the background, because an operator may delete the key meanwhile
		t.Errorf("%d scripts for two ends, want five at most", n)
	}
}
