package once_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestStaleDecisions: an operator decides about a record that has changed since in a way that neither its state nor its token tells.
func TestStaleDecisions(t *testing.T) {
	t.Parallel()
	forget := func(ctx context.Context, o *core.Once, seen core.Record) error { return o.Forget(ctx, seen) }
	forgetRunning := func(ctx context.Context, o *core.Once, seen core.Record) error { return o.ForgetRunning(ctx, seen) }
	resolve := func(ctx context.Context, o *core.Once, seen core.Record) error {
		return o.Resolve(ctx, seen, []byte("by hand"))
	}
	// released runs one attempt that releases the record.
	released := func(ctx context.Context, o *core.Once) error {
		a, err := o.Begin(ctx)
		if err != nil {
			return err
		}
		return a.Release(ctx)
	}
	type decide func(context.Context, *core.Once, core.Record) error
	for what, c := range map[string]struct {
		opts    []core.OnceOption
		before  func(ctx context.Context, a *core.Attempt, o *core.Once, rdb *redis.Client) error // until the operator looks
		after   func(ctx context.Context, a *core.Attempt, o *core.Once) error                    // until the operator decides
		decides []decide
	}{
		"held after its lease": {
			[]core.OnceOption{core.WithFailurePolicy(core.HoldFailures)},
			func(_ context.Context, _ *core.Attempt, o *core.Once, rdb *redis.Client) error {
				coretest.Abandon(t, rdb, o.Key())
				return nil
			},
			func(ctx context.Context, a *core.Attempt, _ *core.Once) error {
				return a.Hold(ctx, "the money was moved")
			},
			[]decide{forget, forgetRunning, resolve},
		},
		"completed after its lease": {
			nil,
			func(ctx context.Context, a *core.Attempt, o *core.Once, rdb *redis.Client) error {
				err := a.Declare(ctx, core.StateCompleted)
				coretest.Abandon(t, rdb, o.Key())
				return err
			},
			func(ctx context.Context, a *core.Attempt, _ *core.Once) error {
				return a.Complete(ctx, []byte("receipt"))
			},
			[]decide{forget, forgetRunning},
		},
		"another attempt was released": {
			nil,
			func(ctx context.Context, a *core.Attempt, _ *core.Once, _ *redis.Client) error { return a.Release(ctx) },
			func(ctx context.Context, _ *core.Attempt, o *core.Once) error { return released(ctx, o) },
			[]decide{forget, forgetRunning, resolve},
		},
		"declared completed": {
			nil,
			func(context.Context, *core.Attempt, *core.Once, *redis.Client) error { return nil },
			func(ctx context.Context, a *core.Attempt, _ *core.Once) error {
				return a.Declare(ctx, core.StateCompleted)
			},
			[]decide{forget, forgetRunning, resolve},
		},
		"declared unknown": {
			nil,
			func(context.Context, *core.Attempt, *core.Once, *redis.Client) error { return nil },
			func(ctx context.Context, a *core.Attempt, _ *core.Once) error {
				return a.Declare(ctx, core.StateUnknown)
			},
			[]decide{forgetRunning},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			rdb := testkit.Start(t).Client()
			locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
			once := locks.Once("name", c.opts...)
			a := coretest.MustBegin(t, once)
			if err := c.before(ctx, a, once, rdb); err != nil {
				t.Fatal(err)
			}
			seen := coretest.MustPeek(t, once)
			if err := c.after(ctx, a, once); err != nil {
				t.Fatal(err)
			}
			stored := contents(t, rdb, "name")
			for i, decide := range c.decides {
				if err := decide(ctx, once, seen); !errors.Is(err, core.ErrChanged) {
					t.Errorf("decision %d: %v", i, err)
				}
				if now := contents(t, rdb, "name"); !maps.Equal(stored, now) {
					t.Fatalf("decision %d: %v has become %v", i, stored, now)
				}
			}
			if now := coretest.MustPeek(t, once); now.State != core.StateNone {
				if err := once.ForgetRunning(ctx, now); err != nil {
					t.Errorf("as it is now: %v", err)
				}
			}
		})
	}
}
