package fair_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestLineAndRedisson: what a Redisson client holds, with an RLock or with its read-write lock, is respected by every
// strategy and waited for in line; the first in line hears of the release. And what is held here is a lock of another owner
// to Redisson's scripts: a hash without the field of their owner, with a mode that is none of theirs.
func TestLineAndRedisson(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithPrefix(""), core.WithTTL(coretest.Long))
	java := "8b0f7e2d-0000-4000-8000-000000000001:42"
	for kind, strategy := range coretest.OnlyQueued(locks) {
		for state, fields := range map[string][]any{
			"RLock": {java, 1}, "read": {"mode", "read", java, 1}, "write": {"mode", "write", java + ":write", 1},
		} {
			name := kind + state
			rdb.HSet(ctx, name, fields...)
			rdb.PExpire(ctx, name, coretest.Long)
			coretest.WantErr(t, coretest.TryLock(strategy(name)), core.ErrNotAcquired)
			coretest.WantErr(t, coretest.TryLock(locks.Mutex(name)), core.ErrNotAcquired)
			waiting := coretest.LockLater(strategy(name))
			coretest.AwaitQueue(t, locks, name, 1)
			coretest.AwaitListeners(t, locks, name, 1)
			if got := rdb.HLen(ctx, name).Val(); got != int64(len(fields)/2) {
				t.Errorf("%s: %d fields in Redisson's hash", name, got)
			}
			rdb.Del(ctx, name)
			rdb.Publish(ctx, "redisson_lock__channel:{"+name+"}", "0")
			if err := coretest.Receive(t, waiting); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			lease := coretest.MustLock(t, strategy(name))
			if mode := rdb.HGet(ctx, name, "mode").Val(); mode == "" || mode == "read" || mode == "write" {
				t.Errorf("%s: mode %q", name, mode)
			}
			if ttl := rdb.PTTL(ctx, name).Val(); ttl <= 0 {
				t.Errorf("%s: PTTL %v", name, ttl)
			}
			announced := coretest.Subscribe(t, rdb, "redisson_lock__channel:{"+name+"}")
			coretest.Unlock(t, lease)
			if got := announced(); got != "0" {
				t.Errorf("%s: message %q, want 0", name, got)
			}
		}
	}
}
