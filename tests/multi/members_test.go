package multi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestMultiRefusesDuplicates: the same key in the same Redis, however it is named and reached.
func TestMultiRefusesDuplicates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks, same, bare := coretest.NewClient(t, rdb), coretest.NewClient(t, rdb), coretest.NewClient(t, rdb, core.WithPrefix(""))
	byOtherAddress := coretest.NewClient(t, server.Relay().Client())
	for what, lockers := range map[string][]*core.Lock{
		"one client":                  {locks.Mutex("a"), locks.Mutex("b"), locks.Mutex("a")},
		"one connection":              {locks.Mutex("a"), same.Mutex("a")},
		"another prefix":              {locks.Mutex("a"), bare.Mutex("lock:a")},
		"another connection":          {locks.Mutex("b"), locks.Mutex("a"), byOtherAddress.Mutex("a")},
		"another connection, renamed": {bare.Mutex("lock:a"), byOtherAddress.Mutex("a")},
		"nested":                      {locks.Mutex("a"), coretest.Mutexes(locks, "b", "a")},
	} {
		_, err := core.Multi(lockers...).TryLock(ctx)
		coretest.WantErr(t, err, core.ErrInvalidOption)
		if err == nil || !strings.Contains(err.Error(), "Multi") || !strings.Contains(err.Error(), `a"`) {
			t.Errorf("%s: %v", what, err)
		}
		_, err = core.Multi(lockers...).Lock(ctx)
		coretest.WantErr(t, err, core.ErrInvalidOption)
	}
	coretest.WantFree(t, rdb, "a", "b")
	coretest.Unlock(t, coretest.MustLock(t, core.Multi(locks.Mutex("a"), bare.Mutex("a")))) // other keys
	marks := rdb.Keys(ctx, "holdfast:deployment:*").Val()
	if len(marks) != 1 { // a and b are in different slots
		t.Fatalf("marks %q, want that of a alone", marks)
	}
	if ttl := rdb.PTTL(ctx, marks[0]).Val(); ttl <= 0 {
		t.Errorf("the mark stays for %v", ttl)
	}
}

// TestMultiOverServers: the same name on two servers, or in two databases, is two locks, which all lock in the same
// order and enter by the same context.
func TestMultiOverServers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	one, two := testkit.Start(t), testkit.Start(t)
	for what, rdbs := range map[string][2]*redis.Client{
		"servers":   {one.Client(), two.Client()},
		"databases": {one.Client(), one.Client(func(o *redis.Options) { o.DB = 1 })},
	} {
		a, b := coretest.NewClient(t, rdbs[0], core.WithTTL(coretest.Long)), coretest.NewClient(t, rdbs[1], core.WithTTL(coretest.Long))
		lease := coretest.MustLock(t, core.Multi(a.Mutex("name"), b.Mutex("name")))
		for i, locks := range []*core.Client{a, b} {
			if left := coretest.LeftFor(t, rdbs[i], "name"); left < coretest.Long-coretest.Within {
				t.Errorf("%s: %v left", what, left)
			}
			coretest.Unlock(t, coretest.MustLockWith(t, lease.Context(), locks.Mutex("name"), core.WithWait(coretest.Within)))
		}
		coretest.Unlock(t, lease)
		done := make(chan error, 2)
		for _, lock := range []*core.Lock{
			core.Multi(a.Mutex("name"), b.Mutex("name")), core.Multi(b.Mutex("name"), a.Mutex("name")),
		} {
			go func() {
				for range 10 {
					if err := lock.Do(ctx, func(context.Context) error { return nil }); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 2 {
			if err := coretest.Receive(t, done); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// TestMultiArguments: what is wrong is told by Lock and TryLock, before anything is asked of Redis.
func TestMultiArguments(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	a := locks.Mutex("a")
	for what, tc := range map[string]struct {
		lock *core.Lock
		want error
		says string
	}{
		"no members":     {core.Multi(), core.ErrInvalidOption, "Multi: no members"},
		"nil":            {core.Multi(a, nil), core.ErrInvalidOption, "Multi: member 2 is nil"},
		"zero":           {core.Multi(new(core.Lock), a), core.ErrInvalidOption, "Multi: member 1 is nil"},
		"nested":         {core.Multi(a, core.Multi()), core.ErrInvalidOption, "Multi: no members"},
		"invalid name":   {core.Multi(a, locks.Mutex("b{")), core.ErrInvalidName, "b{"},
		"invalid option": {core.Multi(a, locks.Mutex("b", core.WithTTL(-1))), core.ErrInvalidOption, "WithTTL"},
	} {
		for _, lock := range []func(context.Context, ...core.LockOption) (*core.Lease, error){
			tc.lock.Lock, tc.lock.TryLock,
		} {
			_, err := lock(ctx)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	_, err := core.Multi(a, locks.Mutex("b")).Lock(ctx, core.WithWait(-1))
	coretest.WantErr(t, err, core.ErrInvalidOption)
	if calls := server.CommandStats()["evalsha"].Calls; calls != 0 {
		t.Errorf("%d requests", calls)
	}
	coretest.WantFree(t, server.Client(), "a")
	if name := core.Multi(a, core.Multi(locks.Mutex("c"), locks.Mutex("b"))).Name(); name != "a+c+b" {
		t.Errorf("Name() = %q", name)
	}
}

// TestMultiOfMulti: the locks of a Multi within another one get the common token too.
func TestMultiOfMulti(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	lock := core.Multi(coretest.Mutexes(locks, "a", "b"), locks.Fair("c"))
	for range 2 {
		lease := coretest.MustLock(t, lock)
		for _, name := range []string{"a", "b", "c"} {
			if token := coretest.TokenOf(t, rdb, "lock:"+name); token != lease.Token() {
				t.Errorf("%s has the token %d, not %d", name, token, lease.Token())
			}
			coretest.Unlock(t, coretest.MustLockWith(t, lease.Context(), locks.Mutex(name)))
		}
		coretest.Unlock(t, lease)
		coretest.WantFree(t, rdb, "a", "b", "c")
	}
	lease := coretest.MustLock(t, lock)
	rdb.Del(ctx, "lock:b")
	coretest.WantErr(t, lease.Extend(ctx, coretest.Long), core.ErrNotHeld)
	coretest.WaitFor(t, lease.Done(), "the lease to end")
	coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	coretest.Gone(t, rdb, "lock:a")
	coretest.Gone(t, rdb, "lock:c")
}
