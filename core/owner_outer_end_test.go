package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestAbandonEndsReentries: the work under an inner lease hangs, and its context does not tell the outer one. Once that is
// abandoned, the inner one is not renewed any more, even if a lease between them has been unlocked. The lock stays taken.
func TestAbandonEndsReentries(t *testing.T) {
	t.Parallel()
	eachContested(t, func(t *testing.T, c contested) {
		lock := func(ctx context.Context) *core.Lease { return mustLockWith(t, ctx, c.lock(core.WithTTL(long))) }
		outer := lock(context.Background())
		beside := lock(outer.Context())
		middle := lock(outer.Context())
		inner := lock(middle.Context())
		unlock(t, middle)
		outer.Abandon()
		for _, l := range []*core.Lease{outer, beside, inner} {
			waitFor(t, l.Done(), "the lease to end")
			wantAbandoned(t, l)
		}
		wantErr(t, context.Cause(middle.Context()), core.ErrNotHeld)
		wantErr(t, tryLock(c.lock()), core.ErrNotAcquired)
		for _, l := range []*core.Lease{inner, beside, outer} { // their work has stopped after all
			wantErr(t, l.Unlock(context.Background()), core.ErrNotHeld)
		}
		unlock(t, mustLock(t, c.lock(), core.WithWait(within)))
	})
}

// TestAbandonLeavesOthers: a lease that was taken after the outer one had ended, and one of another lock, go on. So does the
// outer lease if an inner one is abandoned.
func TestAbandonLeavesOthers(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var lost losses
	locks := newClient(t, rdb, core.WithTTL(long), lost.hooks())
	outer := mustLock(t, locks.Mutex("name"))
	other := mustLockWith(t, outer.Context(), locks.Mutex("other"))
	between := mustLockWith(t, outer.Context(), locks.Mutex("name"))
	between.Abandon()
	lost.wantOnce(t, "name")
	after := mustLockWith(t, context.WithoutCancel(between.Context()), locks.Mutex("name"))
	if after.Token() != outer.Token() {
		t.Error("the call with the context of the abandoned lease does not enter by the outer one")
	}
	unlock(t, outer)
	outer.Abandon()
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	for _, l := range []*core.Lease{after, other} {
		wantErr(t, context.Cause(l.Context()), core.ErrClosed)
	}
}

// TestAbandonDuringReentry: whichever comes first, no re-entry under the abandoned lease is renewed.
func TestAbandonDuringReentry(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(long))
	for kind, strategy := range strategies(locks) {
		for i := range 20 {
			lock := strategy(kind)
			outer := mustLock(t, lock)
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
				waitFor(t, inner.Done(), "the re-entry to end with the outer lease")
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
	for kind := range wholes(newClient(t, testkit.Start(t).Client())) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks := newClient(t, rdb, core.WithTTL(time.Hour))
			lock := wholes(locks)[kind]
			outer := mustLock(t, lock, core.WithMaxHold(long))
			end := time.Now().Add(long)
			inner := mustLockWith(t, outer.Context(), lock, core.WithMaxHold(2*long))
			deeper := mustLockWith(t, inner.Context(), lock)
			shorter := mustLockWith(t, inner.Context(), lock, core.WithMaxHold(long/2))
			unlock(t, outer)
			if err := deeper.Extend(context.Background(), 5*time.Hour); err != nil {
				t.Error(err)
			}
			if kept := left(t, rdb, lock.names...); kept > time.Hour+long {
				t.Errorf("kept for %v", kept)
			}
			for _, l := range []*core.Lease{inner, deeper} {
				if until := l.ValidUntil(); until.After(end) || until.Before(end.Add(-within)) {
					t.Errorf("valid until %v after the limit of the outer lease", until.Sub(end))
				}
			}
			if until := shorter.ValidUntil(); until.After(time.Now().Add(long / 2)) {
				t.Errorf("valid until %v before the limit of the outer lease, its own is earlier", end.Sub(until))
			}
			for _, l := range []*core.Lease{shorter, deeper, inner} {
				unlock(t, l)
			}
		})
	}
}

// TestMaxHoldEndsReentries: the limit of the outer lease passes, or that of another member of its Multi. The re-entry ends with
// the same cause. The lock is neither released nor renewed.
func TestMaxHoldEndsReentries(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for kind, outside := range map[string]func(c *core.Client, limit core.LockOption) core.Locker{
		"a lease": func(c *core.Client, limit core.LockOption) core.Locker { return c.Fair("lease", limit) },
		"a Multi": func(c *core.Client, limit core.LockOption) core.Locker {
			return core.Multi(c.Fair("another", limit), c.Fair("multi"))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := strings.Fields(strings.ToLower(kind))[1]
			locks := newClient(t, rdb, core.WithTTL(long))
			inner := enterInTime(t, locks.Fair(name), func(limit core.LockOption) core.Locker { return outside(locks, limit) })
			waitFor(t, inner.Done(), "the re-entry to end")
			if cause := context.Cause(inner.Context()); !strings.Contains(cause.Error(), "WithMaxHold") {
				t.Errorf("the cause is %v", cause)
			}
			testkit.Eventually(t, within, "no lease to be renewed", func() bool { return len(locks.Held()) == 0 })
			if kept := left(t, rdb, name); kept < long-within {
				t.Errorf("kept for %v", kept)
			}
		})
	}
}

// enterInTime locks outside with a limit, and enters l under it. On a slow machine the limit may pass before that, so it
// repeats that with a longer one.
func enterInTime(t *testing.T, l core.Locker, outside func(limit core.LockOption) core.Locker) *core.Lease {
	t.Helper()
	for limit := 200 * time.Millisecond; limit < within; limit *= 2 {
		outer := mustLock(t, outside(core.WithMaxHold(limit)))
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
	locks := newClient(t, one.Client(), core.WithTTL(long))
	outer := mustLock(t, locks.Mutex("name"), core.WithMaxHold(long))
	end := time.Now().Add(long)
	same := newClient(t, one.Relay().Client(), core.WithTTL(time.Hour))
	elsewhere := newClient(t, two.Client(), core.WithTTL(time.Hour))
	inner := mustLockWith(t, outer.Context(), same.Mutex("name"))
	apart := mustLockWith(t, outer.Context(), elsewhere.Mutex("name"))
	if inner.ValidUntil().After(end) || apart.ValidUntil().Before(end.Add(long)) {
		t.Errorf("valid until %v and %v after the limit", inner.ValidUntil().Sub(end), apart.ValidUntil().Sub(end))
	}
	outer.Abandon()
	waitFor(t, inner.Done(), "the re-entry to end")
	unlock(t, apart)
	wantErr(t, inner.Unlock(context.Background()), core.ErrNotHeld)
	wantErr(t, outer.Unlock(context.Background()), core.ErrNotHeld)
}
