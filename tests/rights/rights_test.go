package rights_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// doEverything uses all there is of locks, with connections of a restricted user.
func doEverything(t *testing.T, connect func() redis.UniversalClient) {
	t.Helper()
	ctx := context.Background()
	locks, other := coretest.NewClient(t, connect()), coretest.NewClient(t, connect())
	outer := coretest.MustLock(t, locks.Mutex("name"), core.WithTTL(10*time.Second), core.WithMinHold(20*time.Millisecond))
	inner := coretest.MustLockWith(t, outer.Context(), locks.Mutex("name"))
	if err := inner.Extend(ctx, 20*time.Second); err != nil {
		t.Errorf("extend: %v", err)
	}
	waiting := coretest.LockLater(other.Mutex("name"))
	coretest.AwaitListeners(t, other, "name", 1)
	coretest.Unlock(t, inner)
	coretest.Unlock(t, outer)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
	for name, strategy := range coretest.Strategies(locks) {
		coretest.EnterEveryWay(t, name, strategy, coretest.Strategies(other)[name])
	}
	joint := coretest.MustLock(t, core.Multi(locks.Mutex("a"), locks.Mutex("b")))
	coretest.Unlock(t, coretest.MustLockWith(t, joint.Context(), coretest.MutexesAndWrite(locks, "a", "c")))
	coretest.Unlock(t, joint)
	_, err := core.Multi(locks.Mutex("a"), other.Mutex("a")).TryLock(ctx)
	coretest.WantErr(t, err, core.ErrInvalidOption)
	coretest.MustLock(t, locks.Mutex("name"))
	if forced, err := other.ForceUnlock(ctx, "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	coretest.EndEveryWay(t, locks, other, "name")
	countEveryWay(t, locks, other)
}
