package hooks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestHooksTellTheMode: of each kind of lock, in all hooks, with the permits of a semaphore.
func TestHooksTellTheMode(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	three := coretest.StartMasters(t, 3)
	var told []any
	hooks := core.WithHooks(core.Hooks{
		AcquireStart: func(ctx context.Context, a core.AcquireStart) context.Context {
			told = append(told, a.Mode, a.Permits, a.Limit)
			return ctx
		},
		AcquireEnd: func(_ context.Context, a core.AcquireEnd) { told = append(told, a.Mode, a.Permits, a.Limit) },
		ReleaseStart: func(ctx context.Context, r core.ReleaseStart) context.Context {
			told = append(told, r.Mode, r.Permits, r.Limit)
			return ctx
		},
		ReleaseEnd: func(_ context.Context, r core.ReleaseEnd) { told = append(told, r.Mode, r.Permits, r.Limit) },
	})
	c := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), hooks)
	r := three.Redlock(t, core.WithTTL(coretest.Long), hooks)
	for want, l := range map[core.Mode]*core.Lock{
		core.ModeMutex: c.Mutex("a"), core.ModeFair: c.Fair("b"), core.ModeRead: c.Read("c"), core.ModeWrite: c.FairWrite("d"),
		core.ModeSemaphore: c.Semaphore("e", 5, core.WithPermits(2)), core.ModeRedlock: r.Mutex("f"),
	} {
		told = nil
		coretest.Unlock(t, coretest.MustLock(t, l))
		permits, limit := 0, 0
		if want == core.ModeSemaphore {
			permits, limit = 2, 5
		}
		if len(told) != 12 {
			t.Fatalf("%s: told %v", want, told)
		}
		for i := range 4 {
			if told[3*i] != want || told[3*i+1] != permits || told[3*i+2] != limit {
				t.Errorf("%s: told %v", want, told)
			}
		}
	}
	told = nil
	lead, err := c.Election("e2").Campaign(t.Context())
	if err != nil || told[0] != core.ModeElection {
		t.Fatalf("%v, told %v", err, told)
	}
	_ = lead.Resign(t.Context())
}

// TestHooksTellOfTheGrant: contention, place, TTL, re-entry and the holder, which are the facts for metrics of waiting.
func TestHooksTellOfTheGrant(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ends, waits := make(chan core.AcquireEnd, 100), make(chan core.Wait, 100)
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-1:7"), core.WithHooks(core.Hooks{
		AcquireEnd: func(_ context.Context, e core.AcquireEnd) { ends <- e },
		Wait:       func(_ context.Context, w core.Wait) { waits <- w },
	}))
	for name, strategy := range map[string]core.Strategy{"Mutex": locks.Mutex, "Fair": locks.Fair} {
		lock := strategy(name)
		holder := coretest.MustLock(t, lock)
		if e := <-ends; e.Contended || e.Position != 0 || e.TTL != coretest.Long || e.Reentered || e.Holder != "" {
			t.Errorf("%s, granted: %+v", name, e)
		}
		entered := coretest.MustLockWith(t, holder.Context(), lock)
		if e := <-ends; e.Contended || !e.Reentered || e.TTL != coretest.Long {
			t.Errorf("%s, entered again: %+v", name, e)
		}
		coretest.Unlock(t, entered)
		_, err := lock.TryLock(t.Context())
		coretest.WantErr(t, err, core.ErrNotAcquired)
		if e := <-ends; !e.Contended || e.Position != 0 || e.TTL != 0 || e.Holder != holder.Owner() || e.HolderInstance != "web-1:7" {
			t.Errorf("%s, refused: %+v", name, e)
		}
		done := coretest.LockLater(lock)
		w := <-waits
		if w.Holder != holder.Owner() || w.HolderInstance != "web-1:7" || string(w.Mode) != map[string]string{"Mutex": "mutex", "Fair": "fair"}[name] {
			t.Errorf("%s, waits: %+v", name, w)
		}
		coretest.Unlock(t, holder)
		if err := coretest.Receive(t, done); err != nil {
			t.Error(err)
		}
		if e := <-ends; !e.Contended || e.Position != w.Position || (e.Position == 1) != (name == "Fair") || e.Reentered || e.Holder != "" {
			t.Errorf("%s, granted after a wait: %+v", name, e)
		}
	}
}

// TestHooksHaveTheMargin: how long a lease was still valid at its renewal and its release.
func TestHooksHaveTheMargin(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	renewed, ends := make(chan core.Renewed, 100), make(chan core.ReleaseEnd, 100)
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(ttl), core.WithHooks(core.Hooks{
		Renewed:    func(_ context.Context, r core.Renewed) { renewed <- r },
		ReleaseEnd: func(_ context.Context, r core.ReleaseEnd) { ends <- r },
	}))
	lease := coretest.MustLock(t, locks.Mutex("name"))
	r := <-renewed
	// The renewal leaves a third of the TTL after the grant, however late a busy machine sends it.
	if r.Err != nil || r.TTL != ttl || r.Took <= 0 || r.Left <= 0 || r.Left > ttl*2/3+100*time.Millisecond || r.Mode != core.ModeMutex {
		t.Errorf("%+v", r)
	}
	coretest.Unlock(t, lease)
	if e := <-ends; e.Left <= 0 || e.Left >= ttl {
		t.Errorf("%+v", e)
	}
	_ = lease.Unlock(t.Context())
	if e := <-ends; e.Left != 0 {
		t.Errorf("of a lease that has ended: %+v", e)
	}
}

// TestHooksSeeRefusals: what AcquireEnd tells of calls that came to nothing.
func TestHooksSeeRefusals(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var start core.AcquireStart
	var end core.AcquireEnd
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		AcquireStart: func(ctx context.Context, s core.AcquireStart) context.Context { start = s; return ctx },
		AcquireEnd:   func(_ context.Context, e core.AcquireEnd) { end = e },
	}))
	lease := coretest.MustLock(t, locks.Mutex("name"), core.WithMaxHold(10*time.Second))
	if start.Try || end.Err != nil {
		t.Errorf("%+v, %+v", start, end)
	}
	if left := time.Until(lease.ValidUntil()); left > 10*time.Second {
		t.Errorf("valid for %v, longer than it may be held", left)
	}
	_, _ = locks.Mutex("name").TryLock(context.Background())
	if coretest.WantErr(t, end.Err, core.ErrNotAcquired); !start.Try || end.Token != 0 {
		t.Errorf("%+v, %+v", start, end)
	}
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := locks.Mutex("name").Lock(dead); err == nil || end.Asked != 0 {
		t.Errorf("a dead context: %v after %d requests", err, end.Asked)
	}
	_, err := locks.Mutex("name", core.WithTTL(366*24*time.Hour)).TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrInvalidOption)
	coretest.Unlock(t, lease)
	_ = rdb.Close()
	// The first request may have had the connection of the command before, which is closed with its client.
	if _, err := locks.Mutex("name").Lock(context.Background()); !errors.Is(err, redis.ErrClosed) || end.Asked < 1 || end.Asked > 2 {
		t.Errorf("a closed connection: %v after %d requests", err, end.Asked)
	}
}
