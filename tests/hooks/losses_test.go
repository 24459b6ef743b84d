package hooks_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestLossReasons: each way to lose a lease has its reason, once.
func TestLossReasons(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ctx := t.Context()
	lost := make(chan core.Lost, 100)
	// The TTL is long enough for a busy machine to notice what the renewal finds, before the lease has expired.
	locks := coretest.NewClient(t, rdb, core.WithTTL(9*time.Second), core.WithLogger(nil), core.WithHooks(core.Hooks{
		Lost: func(_ context.Context, l core.Lost) { lost <- l },
	}))
	coretest.MustLock(t, locks.Mutex("fixed-ttl"), core.WithFixedTTL(50*time.Millisecond))
	coretest.MustLock(t, locks.Mutex("max-hold"), core.WithTTL(coretest.Long), core.WithMaxHold(50*time.Millisecond))
	coretest.MustLock(t, locks.Mutex("gone"))
	rdb.Del(ctx, "lock:gone")
	coretest.MustLock(t, locks.Mutex("forced"))
	if held, err := locks.ForceUnlock(ctx, "forced"); !held || err != nil {
		t.Fatalf("held %v, error %v", held, err)
	}
	coretest.MustLock(t, locks.Mutex("replaced"))
	rdb.Del(ctx, "lock:replaced")
	coretest.MustLock(t, coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Mutex("replaced"))
	taken := coretest.MustLock(t, locks.Mutex("taken"), core.WithTTL(coretest.Long))
	rdb.Del(ctx, "lock:taken")
	_ = taken.Extend(ctx, coretest.Long)
	coretest.MustLock(t, locks.Mutex("abandoned"), core.WithTTL(coretest.Long)).Abandon()
	want := map[string]bool{"fixed-ttl": true, "max-hold": true, "gone": true, "forced": true, "replaced": true, "taken": true, "abandoned": true}
	for len(want) > 0 {
		select {
		case l := <-lost:
			left := l.Reason != core.LossFixedTTL && l.Reason != core.LossMaxHold
			if !want[l.Name] || string(l.Reason) != l.Name || (l.Left > 0) != left || l.Held <= 0 || l.Mode != core.ModeMutex {
				t.Errorf("%+v", l)
			}
			delete(want, l.Name)
		case <-time.After(coretest.Within):
			t.Fatalf("not told: %v", want)
		}
	}
	coretest.MustLock(t, locks.Mutex("closed"))
	coretest.MustBegin(t, locks.Once("closed"))
	_ = locks.Close()
	for _, l := range []core.Lost{<-lost, <-lost} {
		if l.Name != "closed" || l.Reason != core.LossClosed {
			t.Errorf("%+v", l)
		}
		coretest.WantErr(t, l.Cause, core.ErrClosed)
	}
}

// TestExpiryIsALossReason: of a lease that no renewal has reached.
func TestExpiryIsALossReason(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	lost := make(chan core.Lost, 100)
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(time.Second), core.WithLogger(nil), core.WithHooks(core.Hooks{
		Lost: func(_ context.Context, l core.Lost) { lost <- l },
	}))
	coretest.MustLock(t, locks.Mutex("name"))
	relay.Refuse(true)
	relay.Reset()
	if l := <-lost; l.Reason != core.LossExpired || l.Left != 0 {
		t.Errorf("%+v", l)
	}
}

// gauge counts leases as the comment of [core.Hooks] says.
type gauge struct{ now atomic.Int64 }

func (g *gauge) hooks() core.Option {
	ended := func(ends bool) {
		if ends {
			g.now.Add(-1)
		}
	}
	return core.WithHooks(core.Hooks{
		AcquireEnd: func(_ context.Context, e core.AcquireEnd) {
			if e.Err == nil {
				g.now.Add(1)
			}
		},
		BeginEnd: func(_ context.Context, e core.BeginEnd) {
			if e.Err == nil {
				g.now.Add(1)
			}
		},
		Lost:       func(context.Context, core.Lost) { ended(true) },
		ReleaseEnd: func(_ context.Context, e core.ReleaseEnd) { ended(!errors.Is(e.Err, core.ErrNotHeld)) },
		AttemptEnd: func(_ context.Context, e core.AttemptEnd) { ended(!e.LeaseLost) },
	})
}

// TestLeasesAreCounted: from hooks alone, whatever becomes of leases and attempts, and with Close.
func TestLeasesAreCounted(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var g gauge
	locks := coretest.NewClient(t, rdb, core.WithTTL(2*time.Second), core.WithLogger(nil), g.hooks())
	kinds := []core.Strategy{locks.Mutex, locks.Read, locks.Limit(2), func(name string, _ ...core.LockOption) *core.Lock {
		return core.Multi(locks.Mutex("{"+name+"}a"), locks.Mutex("{"+name+"}b"))
	}}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(1, uint64(worker)))
			for range 30 {
				name := string(rune('a' + dice.IntN(6)))
				countLease(rdb, kinds[dice.IntN(len(kinds))]("lock-"+name), dice.IntN(5))
				countAttempt(locks.Once(name), dice.IntN(4))
			}
		})
	}
	all.Wait()
	coretest.MustLock(t, core.Multi(locks.Mutex("{held}a"), locks.Mutex("{held}b")))
	coretest.MustBegin(t, locks.Once("held"))
	testkit.Eventually(t, coretest.Within, "three leases to be counted", func() bool { return g.now.Load() == 3 })
	_ = locks.Close()
	if n := g.now.Load(); n != 0 {
		t.Errorf("%d leases after Close", n)
	}
}

// countLease acquires a lock if it is free, and ends it in one of five ways.
func countLease(rdb *redis.Client, lock *core.Lock, way int) {
	ctx := context.Background()
	lease, err := lock.TryLock(ctx)
	if err != nil {
		return
	}
	if way == 2 {
		rdb.Del(ctx, "lock:"+lock.Name())
	}
	if way == 3 {
		lease.Abandon()
	}
	if way == 4 {
		defer lease.Unlock(ctx) //nolint:errcheck // it is unlocked twice
	}
	_ = lease.Unlock(ctx)
}

// countAttempt begins an attempt if that may be, and ends it in one of four ways.
func countAttempt(once *core.Once, way int) {
	ctx := context.Background()
	attempt, err := once.Begin(ctx)
	if err != nil {
		return
	}
	switch way {
	case 0:
		_ = attempt.Complete(ctx, nil)
		_ = coretest.ForgetNow(ctx, once)
	case 1:
		attempt.Abandon()
		_ = attempt.Release(ctx)
	default:
		_ = attempt.Release(ctx)
		_ = attempt.Release(ctx)
	}
}
