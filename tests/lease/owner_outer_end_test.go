package lease_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestAbandonEndsReentries: the work under an inner lease hangs, and its context does not tell the outer one. Once that is
// abandoned, the inner one is not renewed any more, even if a lease between them has been unlocked. The lock stays taken.
func TestAbandonEndsReentries(t *testing.T) {
	t.Parallel()
	eachContested(t, func(t *testing.T, c contested) {
		lock := func(ctx context.Context) *core.Lease {
			return coretest.MustLockWith(t, ctx, c.lock(core.WithTTL(coretest.Long)))
		}
		outer := lock(context.Background())
		beside := lock(outer.Context())
		middle := lock(outer.Context())
		inner := lock(middle.Context())
		coretest.Unlock(t, middle)
		outer.Abandon()
		for _, l := range []*core.Lease{outer, beside, inner} {
			coretest.WaitFor(t, l.Done(), "the lease to end")
			wantAbandoned(t, l)
		}
		coretest.WantErr(t, context.Cause(middle.Context()), core.ErrNotHeld)
		coretest.WantErr(t, coretest.TryLock(c.lock()), core.ErrNotAcquired)
		for _, l := range []*core.Lease{inner, beside, outer} { // their work has stopped after all
			coretest.WantErr(t, l.Unlock(context.Background()), core.ErrNotHeld)
		}
		coretest.Unlock(t, coretest.MustLock(t, c.lock(), core.WithWait(coretest.Within)))
	})
}

// TestAbandonLeavesOthers: a lease that was taken after the outer one had ended, and one of another lock, continue. So does the
// outer lease if an inner one is abandoned.
func TestAbandonLeavesOthers(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var lost coretest.Losses
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), lost.Hooks())
	outer := coretest.MustLock(t, locks.Mutex("name"))
	other := coretest.MustLockWith(t, outer.Context(), locks.Mutex("other"))
	between := coretest.MustLockWith(t, outer.Context(), locks.Mutex("name"))
	between.Abandon()
	lost.WantOnce(t, "name")
	after := coretest.MustLockWith(t, context.WithoutCancel(between.Context()), locks.Mutex("name"))
	if after.Token() != outer.Token() {
		t.Error("the call with the context of the abandoned lease does not enter by the outer one")
	}
	coretest.Unlock(t, outer)
	outer.Abandon()
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	for _, l := range []*core.Lease{after, other} {
		coretest.WantErr(t, context.Cause(l.Context()), core.ErrClosed)
	}
}

// TestAbandonDuringReentry: whichever comes first, no re-entry under the abandoned lease is renewed.
func TestAbandonDuringReentry(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	for kind, strategy := range coretest.Strategies(locks) {
		for i := range 20 {
			lock := strategy(kind)
			outer := coretest.MustLock(t, lock)
			ctx := context.WithoutCancel(outer.Context())
			entered := make(chan *core.Lease, 1)
			go func() {
				lease, _ := lock.TryLock(ctx)
				entered <- lease
			}()
			time.Sleep(time.Duration(i) * 20 * time.Microsecond)
			outer.Abandon()
			inner := <-entered
			if inner != nil && inner.Owner() == outer.Owner() {
				coretest.WaitFor(t, inner.Done(), "the re-entry to end with the outer lease")
			}
			for _, l := range []*core.Lease{inner, outer} {
				if l != nil {
					_ = l.Unlock(context.Background())
				}
			}
		}
	}
}

// TestMaxHoldOfReentries: a re-entry ends with the limit of the outer lease, or with its own if that is earlier. Neither Extend
// nor the end of the outer lease changes that.
func TestMaxHoldOfReentries(t *testing.T) {
	t.Parallel()
	for kind := range wholes(coretest.NewClient(t, testkit.Start(t).Client())) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks := coretest.NewClient(t, rdb, core.WithTTL(time.Hour))
			lock := wholes(locks)[kind]
			outer := coretest.MustLock(t, lock, core.WithMaxHold(coretest.Long))
			end := time.Now().Add(coretest.Long)
			inner := coretest.MustLockWith(t, outer.Context(), lock, core.WithMaxHold(2*coretest.Long))
			deeper := coretest.MustLockWith(t, inner.Context(), lock)
			shorter := coretest.MustLockWith(t, inner.Context(), lock, core.WithMaxHold(coretest.Long/2))
			coretest.Unlock(t, outer)
			if err := deeper.Extend(context.Background(), 5*time.Hour); err != nil {
				t.Error(err)
			}
			if kept := left(t, rdb, lock.names...); kept > time.Hour+coretest.Long {
				t.Errorf("kept for %v", kept)
			}
			for _, l := range []*core.Lease{inner, deeper} {
				if until := l.ValidUntil(); until.After(end) || until.Before(end.Add(-coretest.Within)) {
					t.Errorf("valid until %v after the limit of the outer lease", until.Sub(end))
				}
			}
			if until := shorter.ValidUntil(); until.After(time.Now().Add(coretest.Long / 2)) {
				t.Errorf("valid until %v before the limit of the outer lease, its own is earlier", end.Sub(until))
			}
			for _, l := range []*core.Lease{shorter, deeper, inner} {
				coretest.Unlock(t, l)
			}
		})
	}
}

// TestMaxHoldEndsReentries: the limit of the outer lease passes, or the limit of another member of its Multi. The re-entry ends with
// the same cause. The lock is neither released nor renewed.
func TestMaxHoldEndsReentries(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for kind, outside := range map[string]func(c *core.Client, limit core.LockOption) *core.Lock{
		"a lease": func(c *core.Client, limit core.LockOption) *core.Lock { return c.Fair("lease", limit) },
		"a Multi": func(c *core.Client, limit core.LockOption) *core.Lock {
			return core.Multi(c.Fair("another", limit), c.Fair("multi"))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := strings.Fields(strings.ToLower(kind))[1]
			locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
			inner := enterInTime(t, locks.Fair(name), func(limit core.LockOption) *core.Lock { return outside(locks, limit) })
			coretest.WaitFor(t, inner.Done(), "the re-entry to end")
			if cause := context.Cause(inner.Context()); !strings.Contains(cause.Error(), "WithMaxHold") {
				t.Errorf("the cause is %v", cause)
			}
			testkit.Eventually(t, coretest.Within, "no lease to be renewed", func() bool { return len(locks.Held()) == 0 })
			if kept := left(t, rdb, name); kept < coretest.Long-coretest.Within {
				t.Errorf("kept for %v", kept)
			}
		})
	}
}

// enterInTime locks outside with a limit, and enters l under it. On a slow machine the limit may pass before that, so it
// repeats that with a longer one.
func enterInTime(t *testing.T, l *core.Lock, outside func(limit core.LockOption) *core.Lock) *core.Lease {
	t.Helper()
	for limit := 200 * time.Millisecond; limit < coretest.Within; limit *= 2 {
		outer := coretest.MustLock(t, outside(core.WithMaxHold(limit)))
		inner, err := l.TryLock(outer.Context())
		if err == nil {
			return inner
		}
		_ = outer.Unlock(context.Background())
	}
	t.Fatal("no re-entry before the limit")
	return nil
}

// TestReentryByAnotherClient: another client that reaches the same Redis by a connection of its own enters the lease, so the
// limit applies. A lock of the same name in another Redis has nothing to do with it.
func TestReentryByAnotherClient(t *testing.T) {
	t.Parallel()
	one, two := testkit.Start(t), testkit.Start(t)
	locks := coretest.NewClient(t, one.Client(), core.WithTTL(coretest.Long))
	outer := coretest.MustLock(t, locks.Mutex("name"), core.WithMaxHold(coretest.Long))
	end := time.Now().Add(coretest.Long)
	same := coretest.NewClient(t, one.Relay().Client(), core.WithTTL(time.Hour))
	elsewhere := coretest.NewClient(t, two.Client(), core.WithTTL(time.Hour))
	inner := coretest.MustLockWith(t, outer.Context(), same.Mutex("name"))
	apart := coretest.MustLockWith(t, outer.Context(), elsewhere.Mutex("name"))
	if inner.ValidUntil().After(end) || apart.ValidUntil().Before(end.Add(coretest.Long)) {
		t.Errorf("valid until %v and %v after the limit", inner.ValidUntil().Sub(end), apart.ValidUntil().Sub(end))
	}
	outer.Abandon()
	coretest.WaitFor(t, inner.Done(), "the re-entry to end")
	coretest.Unlock(t, apart)
	coretest.WantErr(t, inner.Unlock(context.Background()), core.ErrNotHeld)
	coretest.WantErr(t, outer.Unlock(context.Background()), core.ErrNotHeld)
}
