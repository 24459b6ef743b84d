package httplock

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestDoWithoutKeyRunsNothing(t *testing.T) {
	t.Parallel()
	strategy := coretest.Unused(t)
	e, err := newExclusive(strategy, Unscoped(), exclusiveSettings())
	if err != nil {
		t.Fatal(err)
	}
	conflict := doExclusive(t.Context(), e, item{}, func(context.Context) { t.Error("ran") })
	if conflict == nil || conflict.Code != CodeKeyRequired {
		t.Errorf("conflict %v", conflict)
	}
}

// TestGrantedTooLateRunsNothing: the client leaves just when the lock is granted.
func TestGrantedTooLateRunsNothing(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithHooks(core.Hooks{
		AcquireEnd: func(context.Context, core.AcquireEnd) { leave() },
	}))
	name := ""
	config := exclusiveSettings()
	config.Wait = time.Minute // the machine may be busy
	e, err := newExclusive(func(n string, opts ...core.LockOption) *core.Lock {
		name = n
		return locks.Mutex(n, opts...)
	}, Unscoped(), config)
	if err != nil {
		t.Fatal(err)
	}
	conflict := doExclusive(ctx, e, item{Key: mustKey(t, "a", "b")}, func(context.Context) { t.Error("ran") })
	if conflict == nil || conflict.Code != CodeClientGone {
		t.Errorf("conflict %v, want client-gone", conflict)
	}
	if info, err := locks.Inspect(t.Context(), name); err != nil || len(info.Holders) > 0 {
		t.Errorf("after that the lock is %+v, %v", info, err)
	}
}
