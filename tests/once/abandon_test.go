package once_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestAttemptAbandon: others are refused until the lease is over. What the attempt counts as then, it has said.
func TestAttemptAbandon(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	var lost coretest.Losses
	locks, other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), lost.Hooks()), coretest.NewClient(t, rdb)
	var names []string
	for name, test := range map[string]struct {
		policy   core.FailurePolicy
		declared []core.State
		want     core.State
	}{
		"retry":            {core.RetryFailures, nil, core.StateAbandoned},
		"hold":             {core.HoldFailures, nil, core.StateUnknown},
		"declared done":    {core.RetryFailures, []core.State{core.StateCompleted}, core.StateCompleted},
		"declared unknown": {core.RetryFailures, []core.State{core.StateUnknown}, core.StateUnknown},
	} {
		names = append(names, name)
		once := locks.Once(name, core.WithFailurePolicy(test.policy))
		a := coretest.MustBegin(t, once)
		before := coretest.MustPeek(t, once).Lease
		a.Abandon()
		a.Abandon()
		coretest.WaitFor(t, a.Context().Done(), "the attempt to end")
		coretest.WantErr(t, context.Cause(a.Context()), core.ErrLeaseLost)
		_, err := other.Once(name).Begin(ctx)
		var busy *core.InProgressError
		if !errors.As(err, &busy) || busy.RetryAfter <= 0 || busy.RetryAfter > before {
			t.Errorf("%s: %v, the lease had %v left", name, err, before)
		}
		for _, state := range test.declared {
			if err := a.Declare(ctx, state); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		coretest.WantState(t, once, core.StateRunning, 1)
		coretest.Abandon(t, rdb, name)
		coretest.WantState(t, once, test.want, 1)
		wantFollower(t, other.Once(name), test.want)
		if err := a.Complete(ctx, nil); test.want == core.StateAbandoned {
			coretest.WantErr(t, err, core.ErrStale)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	lost.WantOnce(t, names...)
}

// TestEndAfterAbandon: the handler has ended after all, and no attempt has followed, whether its lease is over or not.
func TestEndAfterAbandon(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	ends := make(chan core.AttemptEnd, 100)
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		AttemptEnd: func(_ context.Context, end core.AttemptEnd) { ends <- end },
	}))
	for name, end := range map[string]func(*core.Attempt) (core.State, error){
		"complete": func(a *core.Attempt) (core.State, error) { return core.StateCompleted, a.Complete(ctx, nil) },
		"hold":     func(a *core.Attempt) (core.State, error) { return core.StateUnknown, a.Hold(ctx, "") },
		"release":  func(a *core.Attempt) (core.State, error) { return core.StateNone, a.Release(ctx) },
	} {
		for _, over := range []bool{false, true} {
			once := locks.Once(name)
			a := coretest.MustBegin(t, once)
			a.Abandon()
			if over {
				coretest.Abandon(t, rdb, name)
			}
			state, err := end(a)
			if e := <-ends; err != nil || e.Err != nil || e.State != state || e.Recreated {
				t.Errorf("%s: %v, and the hook saw %+v", name, err, e)
			}
			coretest.WantState(t, once, state, 1)
			a.Abandon()
			coretest.WantErr(t, a.Complete(ctx, nil), core.ErrNotHeld)
			coretest.Forget(t, once)
		}
	}
}

// TestCloseAfterAttemptAbandon leaves the record as it is.
func TestCloseAfterAttemptAbandon(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	a := coretest.MustBegin(t, locks.Once("name"))
	a.Abandon()
	before := contents(t, rdb, "name")
	if err := locks.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	coretest.WantErr(t, context.Cause(a.Context()), core.ErrLeaseLost)
	if after := contents(t, rdb, "name"); !maps.Equal(before, after) {
		t.Errorf("%v has become %v", before, after)
	}
	coretest.WantState(t, coretest.NewClient(t, rdb).Once("name"), core.StateRunning, 1)
}
