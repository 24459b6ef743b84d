package outage_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestFrozenRedis freezes Redis for twice the TTL while a lease is held. The lease's end is measured against
// what ValidUntil promised; the figure is logged, the order of events is checked.
func TestFrozenRedis(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	ctx := context.Background()
	server := testkit.Start(t)
	lease := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(ttl))
	server.Pause()
	frozen := time.Now()
	coretest.WaitFor(t, lease.Done(), "the lease to end")
	late := time.Since(lease.ValidUntil())
	coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	if late < -200*time.Millisecond { // ValidUntil is made of readings of two clocks
		t.Errorf("the lease ended %v before ValidUntil", -late)
	}
	t.Logf("the lease ended %v after ValidUntil", late)
	testkit.Eventually(t, coretest.Within, "twice the TTL", func() bool { return time.Since(frozen) > 2*ttl })
	server.Resume()
	next := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
	coretest.WantErr(t, lease.Unlock(ctx), core.ErrNotHeld)
	coretest.Unlock(t, next)
}

// TestFrozenRedisHeedsContexts ends the contexts of many calls while Redis is frozen; the latest return is
// logged.
func TestFrozenRedisHeedsContexts(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	held := coretest.MustLock(t, locks.Mutex("held"), core.WithTTL(coretest.Long))
	server.Pause()
	var latest atomic.Int64
	var all sync.WaitGroup
	call := func(do func(ctx context.Context) error) {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err := do(ctx)
			deadline, _ := ctx.Deadline()
			coretest.WantErr(t, err, core.ErrUnavailable)
			coretest.WantErr(t, err, context.DeadlineExceeded)
			for late := int64(time.Since(deadline)); ; {
				if old := latest.Load(); late <= old || latest.CompareAndSwap(old, late) {
					return
				}
			}
		})
	}
	for i := range 64 {
		lock := locks.Mutex(fmt.Sprint("name", i))
		call(func(ctx context.Context) error { _, err := lock.Lock(ctx); return err })
		call(func(ctx context.Context) error { _, err := lock.TryLock(ctx); return err })
	}
	call(held.Unlock)
	call(func(ctx context.Context) error { _, err := locks.Inspect(ctx, "held"); return err })
	all.Wait()
	t.Logf("the last of 130 calls returned %v after its deadline", time.Duration(latest.Load()))
	server.Resume()
}

// TestExhaustedPool blocks the only connection: calls must heed their contexts all the same.
func TestExhaustedPool(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client(func(o *redis.Options) { o.PoolSize = 1 })
	locks := coretest.NewClient(t, rdb)
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		rdb.BLPop(context.Background(), 0, "list")
	}()
	testkit.Eventually(t, coretest.Within, "the connection to be taken", func() bool {
		return server.Info("clients", "blocked_clients") == "1"
	})
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond) // far enough for the direct path
	defer cancel()
	_, err := locks.Mutex("name").Lock(ctx)
	coretest.WantErr(t, err, context.DeadlineExceeded)
	coretest.WantErr(t, err, core.ErrUnavailable)
	server.Client().LPush(context.Background(), "list", "x")
	coretest.WaitFor(t, blocked, "the connection to be given back")
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
}

// TestSubscriptionsKilled kills all subscriptions again and again while locks are handed over.
func TestSubscriptionsKilled(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	ctx, stop := context.WithCancel(context.Background())
	killed := make(chan int)
	go func() {
		rdb := server.Client()
		n := 0
		for ctx.Err() == nil {
			n += int(rdb.Do(context.Background(), "CLIENT", "KILL", "TYPE", "pubsub").Val().(int64))
		}
		killed <- n
	}()
	var all sync.WaitGroup
	for range 3 {
		locks := coretest.NewClient(t, server.Client())
		all.Go(func() {
			for range 20 {
				lease := coretest.MustLock(t, locks.Mutex("name"))
				coretest.Unlock(t, lease)
			}
		})
	}
	lease := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("other"), core.WithTTL(coretest.Long))
	waiter := coretest.NewClient(t, server.Client())
	waiting := coretest.LockLater(waiter.Mutex("other"))
	all.Wait()
	coretest.Unlock(t, lease)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
	stop()
	t.Logf("%d subscriptions killed", <-killed)
}

// TestStuckConnection blackholes the connections that are open; what comes after them must not wait for them.
func TestStuckConnection(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	locks := coretest.NewClient(t, relay.Client()) // with go-redis's own, long, read timeout
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	relay.DropExisting(testkit.ToClient)
	stuck, cancel := context.WithCancel(context.Background())
	for i := range 2 * 4 { // more than travel at once
		go func() { _, _ = locks.Mutex(string(rune('a' + i))).Lock(stuck) }()
	}
	ctx, stop := context.WithTimeout(context.Background(), coretest.Within)
	defer stop()
	lease := coretest.MustLockWith(t, ctx, locks.Mutex("other"))
	coretest.Unlock(t, lease)
	cancel()
	relay.Heal()
}

// field returns the one that begins so.
func field(t testing.TB, fields []string, prefix string) string {
	t.Helper()
	for _, f := range fields {
		if strings.HasPrefix(f, prefix) {
			return f
		}
	}
	t.Fatalf("no field %s… in %q", prefix, fields)
	return ""
}
