package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestDoEndsItsContextFirst: the context of a function ends before its lock is released, because goroutines that the function has left
// behind may see it for as long as Redis takes to reply, while another owner has the lock.
func TestDoEndsItsContextFirst(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var held context.Context // of the function
	released := 0
	hooks := core.WithHooks(core.Hooks{ReleaseStart: func(ctx context.Context, _ core.ReleaseStart) context.Context {
		released++
		if held.Err() == nil || !errors.Is(context.Cause(held), core.ErrNotHeld) {
			t.Errorf("the release begins while the context of the function has the cause %v", context.Cause(held))
		}
		return ctx
	}})
	locks := coretest.NewClient(t, rdb, hooks)
	redlock := coretest.StartMasters(t, 3).Redlock(t, hooks)
	for name, lock := range map[string]*core.Lock{
		"mutex": locks.Mutex("a"), "fair": locks.Fair("b"), "read": locks.Read("c"), "multi": core.Multi(locks.Mutex("d")),
		"Redlock": redlock.Mutex("e"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, do := range []func(context.Context, func(context.Context) error, ...core.LockOption) error{lock.Do, lock.TryDo} {
				released = 0
				err := do(t.Context(), func(ctx context.Context) error {
					held = ctx
					return ctx.Err()
				})
				if err != nil || released != 1 {
					t.Errorf("%d releases, %v", released, err)
				}
			}
		})
	}
}

// TestDoContextEndsBeforeNextOwner: the same if the reply to the release is lost.
func TestDoContextEndsBeforeNextOwner(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	rdb := relay.Client()
	coretest.WarmPool(t, rdb)
	// A short TTL, because without a free connection the release cannot be sent: then the lease has to expire.
	locks, other := coretest.NewClient(t, rdb, core.WithTTL(5*time.Second)), coretest.NewClient(t, server.Client())
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	left, done := make(chan context.Context, 1), make(chan error, 1)
	go func() {
		done <- locks.Mutex("name").Do(t.Context(), func(ctx context.Context) error {
			relay.Hold(testkit.ToClient)
			left <- ctx
			return nil
		})
	}()
	ctx := <-left
	lease := coretest.MustLock(t, other.Mutex("name"))
	if ctx.Err() == nil {
		t.Errorf("another owner has the lock, and the context of the former one has the cause %v", context.Cause(ctx))
	}
	coretest.Unlock(t, lease)
	relay.Deliver()
	coretest.WantErr(t, coretest.Receive(t, done), nil)
}
