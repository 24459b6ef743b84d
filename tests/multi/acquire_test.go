package multi_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestMultiAllOrNone: a member that is held leaves the others free, at once, whatever their minimum time; the
// refusal names it.
func TestMultiAllOrNone(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		rdb := server.Client()
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
		held := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("c"), core.WithTTL(coretest.Long))
		all := multi(locks, "d", "c", "b", "a")
		if all.Name() != "d+c+b+a" {
			t.Errorf("Name() = %q", all.Name())
		}
		for what, lock := range map[string]func(...core.LockOption) (*core.Lease, error){
			"TryLock": func(opts ...core.LockOption) (*core.Lease, error) { return all.TryLock(ctx, opts...) },
			"Lock, once": func(opts ...core.LockOption) (*core.Lease, error) {
				return all.Lock(ctx, append(opts, core.WithWait(0))...)
			},
			"Lock, for a while": func(opts ...core.LockOption) (*core.Lease, error) {
				return all.Lock(ctx, append(opts, core.WithWait(2*time.Second))...)
			},
		} {
			_, err := lock(core.WithMinHold(time.Minute))
			var refused *core.NotAcquiredError
			if !errors.As(err, &refused) || refused.Name != "c" || refused.RetryAfter < coretest.Long-coretest.Within {
				t.Errorf("%s: refused with %v", what, err)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: the end of the wait is told as that of a context: %v", what, err)
			}
			for _, name := range []string{"a", "b", "d"} {
				coretest.Gone(t, rdb, "lock:"+name)
			}
		}
		coretest.Unlock(t, held)
		lease := coretest.MustLock(t, all)
		if lease.Name() != "d+c+b+a" || lease.Token() <= held.Token() || lease.Owner() == "" {
			t.Errorf("lease %q of %q with token %d after %d", lease.Name(), lease.Owner(), lease.Token(), held.Token())
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if coretest.LeftFor(t, rdb, name) < coretest.Long-coretest.Within {
				t.Errorf("%s is not held", name)
			}
			if token := coretest.TokenOf(t, rdb, "lock:"+name); token != lease.Token() {
				t.Errorf("%s has the token %d, not %d", name, token, lease.Token())
			}
		}
		coretest.Unlock(t, lease)
		coretest.WantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
		coretest.WantErr(t, lease.Extend(ctx, coretest.Long), core.ErrNotHeld)
		coretest.WantFree(t, rdb, "a", "b", "c", "d")
	})
}

// TestMultiLease: what the lease of all says and does.
func TestMultiLease(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		rdb := server.Client()
		locks := coretest.NewClient(t, rdb)
		lease := coretest.MustLock(t, multi(locks, "a", "b"), core.WithFixedTTL(10*time.Second))
		if left := time.Until(lease.ValidUntil()); left <= 0 || left > 10*time.Second {
			t.Errorf("valid for %v", left)
		}
		if err := lease.Extend(ctx, coretest.Long); err != nil {
			t.Errorf("extend: %v", err)
		}
		if left := time.Until(lease.ValidUntil()); left < coretest.Long-coretest.Within {
			t.Errorf("valid for %v after Extend", left)
		}
		rdb.Del(ctx, "lock:b")
		coretest.WantErr(t, lease.Extend(ctx, coretest.Long), core.ErrNotHeld)
		coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
		coretest.Gone(t, rdb, "lock:a")

		err := multi(locks, "a", "b").Do(ctx, func(ctx context.Context) error {
			token, ok := core.TokenFrom(ctx)
			for _, name := range []string{"a", "b"} {
				if got := coretest.TokenOf(t, rdb, "lock:"+name); !ok || got != token {
					t.Errorf("%s has the token %d, the context %d", name, got, token)
				}
				if err := locks.Mutex(name).TryDo(ctx, func(context.Context) error { return nil }); err != nil {
					t.Errorf("%s is not entered again: %v", name, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("Do: %v", err)
		}
		err = multi(locks, "a", "b").Do(ctx, func(ctx context.Context) error {
			return rdb.Del(ctx, "lock:b").Err()
		})
		coretest.WantErr(t, err, core.ErrLeaseLost)
		coretest.WantFree(t, rdb, "a", "b")
	})
}

// TestMultiReentry enters members of a Multi under it, a Multi under a member, and a Multi under itself.
func TestMultiReentry(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		rdb := server.Client()
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
		outer := coretest.MustLock(t, locks.Mutex("b"))
		before := outer.Token()
		joint := coretest.MustLockWith(t, outer.Context(), multi(locks, "a", "b", "c"))
		if joint.Token() <= before || outer.Token() != before {
			t.Errorf("the joint token is %d, that of the outer lease %d, and was %d", joint.Token(), outer.Token(), before)
		}
		again := coretest.MustLockWith(t, joint.Context(), multi(locks, "c", "b", "a"))
		if again.Token() != joint.Token() {
			t.Errorf("entered again with token %d instead of %d", again.Token(), joint.Token())
		}
		for _, name := range []string{"a", "b", "c"} {
			inner := coretest.MustLockWith(t, joint.Context(), locks.Mutex(name))
			if inner.Token() != joint.Token() {
				t.Errorf("%s: entered with token %d instead of %d", name, inner.Token(), joint.Token())
			}
			coretest.Unlock(t, inner)
		}
		coretest.Unlock(t, joint)
		coretest.Unlock(t, again)
		coretest.WantFree(t, rdb, "a", "c")
		if _, err := coretest.NewClient(t, rdb).Mutex("b").TryLock(ctx); err == nil {
			t.Error("the outer lock was freed with the inner")
		}
		coretest.Unlock(t, outer)
		last := joint.Token()
		for _, name := range []string{"b", "a", "c"} {
			lease := coretest.MustLock(t, locks.Mutex(name))
			if lease.Token() <= joint.Token() {
				t.Errorf("%s: token %d after %d", name, lease.Token(), joint.Token())
			}
			last = max(last, lease.Token())
			coretest.Unlock(t, lease)
		}
		if lease := coretest.MustLock(t, multi(locks, "a", "b", "c")); lease.Token() <= last {
			t.Errorf("token %d after %d", lease.Token(), last)
		}
	})
}

// TestMultiHooks: the hooks see the steps of each member, by whichever way.
func TestMultiHooks(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		steps := make(chan string, 100)
		type key struct{}
		rdb := server.Client()
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
			AcquireStart: func(ctx context.Context, s core.AcquireStart) context.Context {
				return context.WithValue(ctx, key{}, s.Name)
			},
			AcquireEnd: func(ctx context.Context, e core.AcquireEnd) {
				if ctx.Value(key{}) != e.Name || e.Asked != 1 || e.Owner == "" || (e.Token == 0) != (e.Err != nil) {
					t.Errorf("acquired %+v in the context of %v", e, ctx.Value(key{}))
				}
				steps <- "acquired " + e.Name
			},
			ReleaseStart: func(ctx context.Context, s core.ReleaseStart) context.Context {
				return context.WithValue(ctx, key{}, s.Name)
			},
			ReleaseEnd: func(ctx context.Context, e core.ReleaseEnd) {
				if ctx.Value(key{}) != e.Name || e.Token == 0 || e.Err != nil {
					t.Errorf("released %+v", e)
				}
				steps <- "released " + e.Name
			},
			Lost: func(_ context.Context, l core.Lost) { steps <- "lost " + l.Name },
		}))
		seen := func(want ...string) {
			t.Helper()
			var got []string
			for range want {
				select {
				case step := <-steps:
					got = append(got, step)
				case <-time.After(coretest.Within):
					t.Fatalf("steps %q, want %q", got, want)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("steps %q, want %q", got, want)
			}
		}
		lease := coretest.MustLock(t, multi(locks, "b", "a"))
		seen("acquired a", "acquired b")
		coretest.Unlock(t, lease)
		seen("released a", "released b")
		lease = coretest.MustLock(t, multi(locks, "b", "a"))
		seen("acquired a", "acquired b")
		rdb.Del(ctx, "lock:b")
		coretest.WantErr(t, lease.Extend(ctx, coretest.Long), core.ErrNotHeld)
		seen("lost b", "released a")
	})
}

// eachWay runs a test for both ways, with a server of its own.
func eachWay(t *testing.T, test func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock)) {
	t.Parallel()
	for how, multi := range coretest.Multis {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			test(t, testkit.Start(t), multi)
		})
	}
}
