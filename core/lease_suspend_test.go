package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestErrAfterASuspend: after a lease has ended in a suspend, Err of its context returns the loss at once. The timer
// that ends the lease has not run yet. From then on the lease has ended for everybody, with its cause, and the hook is called.
func TestErrAfterASuspend(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	// use gets a function that has the host suspended, and then checks the context.
	for name, use := range map[string]func(t *testing.T, locks *core.Client, check func(ctx context.Context)) error{
		"Lease.Context": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			lease := coretest.MustLock(t, locks.Mutex("a"))
			check(lease.Context())
			return lease.Unlock(t.Context())
		},
		"queue": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			lease := coretest.MustLock(t, locks.Fair("b"))
			check(lease.Context())
			return lease.Unlock(t.Context())
		},
		"fixed": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			lease := coretest.MustLock(t, locks.Mutex("fixed"), core.WithFixedTTL(time.Minute))
			check(lease.Context())
			return lease.Unlock(t.Context())
		},
		"MaxHold": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			lease := coretest.MustLock(t, locks.Mutex("max"), core.WithMaxHold(time.Minute))
			check(lease.Context())
			return lease.Unlock(t.Context())
		},
		"with values": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			type key struct{}
			lease := coretest.MustLock(t, locks.Mutex("values"))
			check(context.WithValue(lease.Context(), key{}, "value"))
			return lease.Unlock(t.Context())
		},
		"re-entry": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			outer := coretest.MustLock(t, locks.Mutex("entered"))
			inner := coretest.MustLockWith(t, outer.Context(), locks.Mutex("entered"))
			check(inner.Context())
			return errors.Join(inner.Unlock(t.Context()), outer.Unlock(t.Context()))
		},
		"Multi at once": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			lease := coretest.MustLock(t, core.Multi(locks.Mutex("{m}c"), locks.Mutex("{m}d")))
			check(lease.Context())
			return lease.Unlock(t.Context())
		},
		"Multi in turn": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			lease := coretest.MustLock(t, core.Multi(locks.Mutex("e"), locks.Fair("f")))
			check(lease.Context())
			return lease.Unlock(t.Context())
		},
		"Do": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			return locks.Mutex("g").Do(t.Context(), func(ctx context.Context) error {
				check(ctx)
				return nil
			})
		},
		"Do with Multi": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			return core.Multi(locks.Mutex("h"), locks.Write("i")).Do(t.Context(), func(ctx context.Context) error {
				check(ctx)
				return nil
			})
		},
		"Facts.Bind": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			lease := coretest.MustLock(t, locks.Mutex("m"))
			ctx, cancel := seal.FactsOf(lease).Lease.Bind(t.Context())
			defer cancel()
			check(ctx)
			return lease.Unlock(t.Context())
		},
		"Attempt.Context": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			a := coretest.MustBegin(t, locks.Once("a"))
			check(a.Context())
			return nil
		},
		"Attempt.Bind": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			ctx, cancel := seal.AttemptOf(coretest.MustBegin(t, locks.Once("b"))).Bind(t.Context())
			defer cancel()
			check(ctx)
			return nil
		},
		"Once.Do": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			_, err := locks.Once("c").Do(t.Context(), func(ctx context.Context) ([]byte, error) {
				check(ctx)
				return nil, ctx.Err()
			})
			return err
		},
		"Leadership.Context": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			lead := coretest.MustCampaign(t, locks.Election("j"))
			check(lead.Context())
			return lead.Resign(t.Context())
		},
		"Election.Run": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			ctx, cancel := context.WithCancel(t.Context())
			return locks.Election("k").Run(ctx, func(ctx context.Context) error {
				defer cancel()
				check(ctx)
				return ctx.Err()
			})
		},
		"Election.TryDo": func(t *testing.T, locks *core.Client, check func(context.Context)) error {
			e := locks.Election("l")
			coretest.MustCampaign(t, e)
			return e.TryDo(t.Context(), func(ctx context.Context) error {
				check(ctx)
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost := make(chan error, 10)
			locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long), core.WithPrefix(name+":"),
				core.WithHooks(core.Hooks{Lost: func(_ context.Context, l core.Lost) { lost <- l.Cause }}))
			suspend := core.Suspendable(locks)
			asked := false
			err := use(t, locks, func(ctx context.Context) {
				asked = true
				if err := ctx.Err(); err != nil {
					t.Fatalf("ended before: %v", err)
				}
				suspend(2 * coretest.Long)
				if err := ctx.Err(); !errors.Is(err, context.Canceled) {
					t.Errorf("Err: %v", err)
				}
				if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLeaseLost) {
					t.Errorf("cause: %v", cause)
				}
				select {
				case <-ctx.Done():
				default:
					t.Error("Done is not closed")
				}
			})
			if !asked {
				t.Fatalf("not asked: %v", err)
			}
			if err == nil && name != "Attempt.Context" && name != "Attempt.Bind" {
				t.Error("the holder saw no loss")
			}
			if err := coretest.Receive(t, lost); !errors.Is(err, core.ErrLeaseLost) {
				t.Errorf("the hook got %v", err)
			}
		})
	}
}

// TestErrWithinTheLease: a context that is asked again and again lasts as long as its lease, and ends with the context around it.
func TestErrWithinTheLease(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	suspend := core.Suspendable(locks)
	ctx, cancel := context.WithCancel(t.Context())
	err := locks.Mutex("name").Do(ctx, func(held context.Context) error {
		for range 10 {
			suspend(coretest.Long / 20)
			if err := held.Err(); err != nil {
				return err
			}
		}
		cancel()
		if err := held.Err(); !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(held), context.Canceled) {
			t.Errorf("Err: %v, %v", err, context.Cause(held))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
