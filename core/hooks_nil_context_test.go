package core_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestHooksWithoutContext: a hook that returns none leaves the call its own.
func TestHooksWithoutContext(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithHooks(core.Hooks{
		AcquireStart: func(context.Context, core.AcquireStart) context.Context { return nil },
		ReleaseStart: func(context.Context, core.ReleaseStart) context.Context { return nil },
		BeginStart:   func(context.Context, core.BeginStart) context.Context { return nil },
	}))
	for _, l := range []core.Locker{locks.Mutex("a"), locks.Fair("b"), core.Multi(locks.Mutex("a"), locks.Mutex("b"))} {
		unlock(t, mustLock(t, l))
	}
	if err := mustBegin(t, locks.Once("a")).Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	gone(t, rdb, "lock:a")
}
