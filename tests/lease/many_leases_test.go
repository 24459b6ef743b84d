package lease_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestTenThousandLeases holds 10,000 leases with one client for two TTLs: none may be lost, the goroutines stay
// few, and renewals share round trips. The client has a process of its own, so that its goroutines can be counted;
// the server counts the rest.
func TestTenThousandLeases(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two TTLs")
	}
	t.Parallel()
	const (
		leases = 10_000
		ttl    = 9 * time.Second
	)
	server := testkit.Start(t)
	var before, after coretest.Counters
	var held manyHeld
	coretest.RunWorker(t, fmt.Sprint("many ", server.Network(), " ", server.Addr(), " ", leases, " ", int64(ttl)),
		func(line []byte) {
			if before = after; before.At.IsZero() { // all are locked
				after = coretest.ReadCounters(t, server)
				return
			}
			after = coretest.ReadCounters(t, server)
			if err := json.Unmarshal(line, &held); err != nil {
				t.Errorf("worker says %q: %v", line, err)
			}
		})
	renewals, reads, seconds := after.Calls-before.Calls, after.Reads-before.Reads, after.At.Sub(before.At).Seconds()
	t.Logf("%d leases taken in %v; %.0f renewals a second in %.0f round trips a second, %.1f to a round trip; "+
		"at most %d goroutines more", leases, held.Took, float64(renewals)/seconds, float64(reads)/seconds,
		float64(renewals)/float64(reads), held.Goroutines)
	if held.Took > ttl { // a quiet machine takes 2 s, and as long for a renewal of all
		t.Skip("the machine is too slow for this")
	}
	if held.Lost != 0 || held.Locks != leases {
		t.Errorf("%d leases lost, %d locks in Redis", held.Lost, held.Locks)
	}
	if renewals < 4*leases { // of 6 in two TTLs, which a busy machine may not come to
		t.Errorf("%d renewals of %d leases", renewals, leases)
	}
	if renewals < 10*reads {
		t.Errorf("%d renewals took %d round trips", renewals, reads)
	}
	if held.Goroutines > 20 {
		t.Errorf("%d goroutines more than before", held.Goroutines)
	}
	if n := locksIn(server.Client()); n != 0 {
		t.Errorf("%d locks in Redis after Close", n)
	}
}

// manyHeld is what the worker of TestTenThousandLeases reports.
type manyHeld struct {
	Took       time.Duration
	Lost       int64
	Locks      int // in Redis at the end
	Goroutines int
}

// holdMany takes many leases, says so, holds them for two TTLs, says what it saw, and lets go of them.
func holdMany(rdb *redis.Client, say func(any), n int, ttl time.Duration) error {
	var held manyHeld
	var lost atomic.Int64
	locks, err := core.New(rdb, core.WithTTL(ttl), core.WithHooks(core.Hooks{
		Lost: func(context.Context, core.Lost) { lost.Add(1) },
	}))
	if err != nil {
		return err
	}
	if held.Took, err = coretest.LockMany(locks, n); err != nil {
		return err
	}
	say(nil)
	goroutines := runtime.NumGoroutine() // of go-redis, mostly
	for began := time.Now(); time.Since(began) < 2*ttl; time.Sleep(time.Millisecond) {
		held.Goroutines = max(held.Goroutines, runtime.NumGoroutine()-goroutines)
	}
	held.Lost, held.Locks = lost.Load(), locksIn(rdb)
	say(held)
	return locks.Close()
}

func locksIn(rdb *redis.Client) (n int) {
	ctx := context.Background()
	for keys := rdb.Scan(ctx, 0, "lock:*", 1000).Iterator(); keys.Next(ctx); {
		n++
	}
	return n
}

// TestRenewalsPassTraffic keeps leases of a short TTL alive while hundreds of goroutines of the same client lock
// and unlock as fast as they can, over few connections.
func TestRenewalsPassTraffic(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client(func(o *redis.Options) { o.PoolSize = 4 })
	locks := coretest.NewClient(t, rdb)
	var leases []*core.Lease
	for i := range 20 {
		leases = append(leases, coretest.MustLock(t, locks.Mutex(fmt.Sprint("kept", i)), core.WithTTL(2*time.Second)))
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range 256 {
		all.Go(func() {
			for ctx.Err() == nil {
				if lease, err := locks.Mutex(fmt.Sprint("busy", i)).Lock(ctx); err == nil {
					_ = lease.Unlock(ctx)
				}
			}
		})
	}
	coretest.AwaitRenewed(t, leases, 4*time.Second)
	stop()
	all.Wait()
	for _, l := range leases {
		coretest.Unlock(t, l)
	}
}
