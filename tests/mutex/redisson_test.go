package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRedissonState: what a Redisson client sees of a held Mutex is an RLock, and its read-write scripts, which
// take a hash without mode for a free lock, see that it is neither free nor theirs.
func TestRedissonState(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithPrefix(""))
	outer := coretest.MustLock(t, locks.Mutex("name"))
	inner := coretest.MustLockWith(t, outer.Context(), locks.Mutex("name"))

	state := rdb.HGetAll(ctx, "name").Val()
	if state[outer.Owner()] != "2" {
		t.Errorf("hold count %q, want 2, in %v", state[outer.Owner()], state)
	}
	if state["mode"] == "" || state["mode"] == "read" || state["mode"] == "write" {
		t.Errorf("mode %q", state["mode"])
	}
	released := coretest.Subscribe(t, rdb, "redisson_lock__channel:{name}")
	coretest.Unlock(t, inner)
	coretest.Unlock(t, outer)
	if got := released(); got != "0" {
		t.Errorf("message %q, want 0", got)
	}
	if n := rdb.Exists(ctx, "name").Val(); n != 0 {
		t.Error("the hash is still there")
	}
}

// TestRedissonHolder: a lock that a Redisson client holds is respected and waited for, and its owner's name can
// be adopted.
func TestRedissonHolder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithPrefix(""))
	java := "8b0f7e2d-0000-4000-8000-000000000001:42"
	rdb.HSet(ctx, "{a}:name", java, 2)
	rdb.PExpire(ctx, "{a}:name", coretest.Long)

	if _, err := locks.Mutex("{a}:name").TryLock(ctx); err == nil {
		t.Error("entered a lock that Redisson holds")
	}
	info, err := locks.Inspect(ctx, "{a}:name")
	if err != nil || info.Mode != core.ModeMutex || len(info.Holders) != 1 ||
		info.Holders[0].Owner != java || info.Holders[0].Holds != 2 || !info.Holders[0].Granted.IsZero() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	adopted := coretest.MustLock(t, locks.Mutex("{a}:name"), core.WithOwner(java))
	if adopted.Token() <= 0 {
		t.Errorf("token %d", adopted.Token())
	}
	if count := rdb.HGet(ctx, "{a}:name", java).Val(); count != "3" {
		t.Errorf("hold count %s, want 3", count)
	}
	coretest.Unlock(t, adopted)
	if count := rdb.HGet(ctx, "{a}:name", java).Val(); count != "2" {
		t.Errorf("hold count %s, want 2", count)
	}

	waiting := coretest.LockLater(locks.Mutex("{a}:name"))
	coretest.AwaitListeners(t, locks, "{a}:name", 1)
	rdb.Del(ctx, "{a}:name")
	rdb.Publish(ctx, "redisson_lock__channel:{a}:name", "0")
	if err := coretest.Receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
}

// TestAdoptedLeaseIsNotCut: entering a Redisson client's hold under its owner's name leaves it its time.
func TestAdoptedLeaseIsNotCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	java := "8b0f7e2d-0000-4000-8000-000000000001:42"
	rdb.HSet(ctx, "lock:name", java, 1)
	rdb.PExpire(ctx, "lock:name", 10*time.Minute)
	lease := coretest.MustLock(t, locks.Mutex("name"), core.WithOwner(java), core.WithTTL(time.Second))
	if _, err := coretest.NewClient(t, rdb).Mutex("name").TryLock(ctx); err == nil {
		t.Error("another owner got in")
	}
	coretest.Unlock(t, lease)
	if left := rdb.PTTL(ctx, "lock:name").Val(); left < 9*time.Minute {
		t.Errorf("Redisson's lease was cut to %v", left)
	}
}
