package multi_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// scriptsRun counts the scripts that a server was asked for.
func scriptsRun(server *testkit.Server) int64 {
	stats := server.CommandStats()
	return stats["evalsha"].Calls - stats["evalsha"].Failed + stats["eval"].Calls // a script that is not loaded fails, and comes again
}

// TestMultiRoundTrips: free members are granted in one round trip, and get their common token in another one. What belongs
// together is also extended and released in one round trip.
func TestMultiRoundTrips(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
	names := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint("name", i))
		}
		return names
	}
	five := coretest.Mutexes(locks, names(5)...)
	warm := coretest.MustLock(t, five)
	if err := warm.Extend(ctx, coretest.Long); err != nil {
		t.Fatal(err)
	}
	coretest.Unlock(t, warm) // scripts are loaded

	const rounds = 50
	for what, lock := range map[string]func(context.Context, ...core.LockOption) (*core.Lease, error){
		"Lock": five.Lock, "TryLock": five.TryLock,
	} {
		before := coretest.ReadCounters(t, server)
		for range rounds {
			lease, err := lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := lease.Extend(ctx, coretest.Long); err != nil {
				t.Errorf("extend: %v", err)
			}
			coretest.Unlock(t, lease)
		}
		after := coretest.ReadCounters(t, server)
		scripts, reads := after.Calls-before.Calls, after.Reads-before.Reads
		t.Logf("%d times %s, Extend and Unlock of five: %d scripts in %d round trips", rounds, what, scripts, reads)
		if scripts != rounds*(5+4+5+5) {
			t.Errorf("%s: %d scripts, want 5 to lock, 4 to raise tokens, 5 to extend, 5 to release, %d times", what, scripts, rounds)
		}
		if reads > rounds*4+20 { // the server counts the commands of this test, too, and of connections that come and go
			t.Errorf("%s: %d round trips", what, reads)
		}
	}
	lease := coretest.MustLock(t, coretest.Mutexes(locks, names(300)...)) // more than fit into a batch
	for i := range 300 {
		if _, err := locks.Mutex(fmt.Sprint("name", i)).TryLock(ctx); err == nil {
			t.Errorf("mutex %d of 300 is free", i)
		}
	}
	coretest.Unlock(t, lease)
}

// TestMultiKeepsTheOrderOfWaiters: a Lock of all does not take the lock from callers of its process that waited before.
func TestMultiKeepsTheOrderOfWaiters(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	held := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("b"), core.WithTTL(coretest.Long))
	var mu sync.Mutex
	var tries int
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		AcquireStart: func(ctx context.Context, s core.AcquireStart) context.Context {
			mu.Lock()
			defer mu.Unlock()
			if s.Try {
				tries++
			}
			return ctx
		},
	}))
	first := coretest.LockLater(locks.Mutex("b"))
	coretest.AwaitListeners(t, locks, "b", 1)
	second := coretest.LockLater(coretest.Mutexes(locks, "a", "b"))
	testkit.Eventually(t, coretest.Within, "the first member to be held", func() bool {
		return rdb.Exists(context.Background(), "lock:a").Val() == 1
	})
	coretest.Unlock(t, held)
	for _, waiting := range []<-chan error{first, second} {
		if err := coretest.Receive(t, waiting); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if tries != 0 {
		t.Errorf("%d tries before its turn", tries)
	}
}

// TestMultiInCluster: members are asked for at once, wherever they lie.
func TestMultiInCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.StartCluster(t, 3)
	rdb := cluster.Client()
	var tries atomic.Int32
	locks, other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		AcquireStart: func(ctx context.Context, s core.AcquireStart) context.Context {
			if s.Try {
				tries.Add(1)
			}
			return ctx
		},
	})), coretest.NewClient(t, cluster.Client())
	total := func() (n int64) {
		for _, s := range cluster.Masters {
			n += scriptsRun(s)
		}
		return n
	}
	for what, names := range map[string][]string{
		"one slot":   {"{user:1}:cart", "{user:1}:stock", "{user:1}:wallet"},
		"many slots": {"cart", "stock", "wallet", "user:1", "user:2"},
	} {
		coretest.Unlock(t, coretest.MustLock(t, coretest.Mutexes(locks, names...)))
		before := total()
		tries.Store(0)
		lease := coretest.MustLock(t, coretest.Mutexes(locks, names...))
		if n := tries.Load(); int(n) != len(names) {
			t.Errorf("%s: %d members were tried at once", what, n)
		}
		if n := total() - before; int(n) > 2*len(names)-1 { // all but one have a smaller token
			t.Errorf("%s: %d scripts", what, n)
		}
		for _, name := range names {
			if _, err := other.Mutex(name).TryLock(ctx); err == nil {
				t.Errorf("%s: %s is free", what, name)
			}
			if token := coretest.TokenOf(t, rdb, "lock:"+name); token != lease.Token() {
				t.Errorf("%s: %s has the token %d, not %d", what, name, token, lease.Token())
			}
		}
		waiting := coretest.LockLater(coretest.Mutexes(other, names...))
		time.AfterFunc(10*time.Millisecond, func() { coretest.Unlock(t, lease) })
		if err := coretest.Receive(t, waiting); err != nil {
			t.Errorf("%s: waiter: %v", what, err)
		}
	}

	// Two clients of one Cluster are one Redis.
	_, err := core.Multi(locks.Mutex("cart"), other.Mutex("cart")).TryLock(ctx)
	coretest.WantErr(t, err, core.ErrInvalidOption)

	// A client that takes a node for a single server learns better.
	direct := coretest.NewClient(t, cluster.Masters[0].Client(), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, coretest.Mutexes(direct, threeNamesOn(ctx, rdb, cluster.Masters[0].Addr())...)))
}

// threeNamesOn returns names of locks whose slots one master of a Cluster serves.
func threeNamesOn(ctx context.Context, rdb *redis.ClusterClient, addr string) (names []string) {
	for i := 0; len(names) < 3; i++ {
		name := fmt.Sprint("name", i)
		if master, err := rdb.MasterForKey(ctx, "lock:"+name); err == nil && master.Options().Addr == addr {
			names = append(names, name)
		}
	}
	return names
}
