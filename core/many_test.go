package core_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestTenThousandLeases holds 10,000 leases with one client for two TTLs: none may be lost, the goroutines stay
// few, and renewals share round trips. The server counts. Not parallel, because it counts goroutines.
func TestTenThousandLeases(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two TTLs")
	}
	const (
		leases = 10_000
		ttl    = 6 * time.Second
	)
	server := redistest.Start(t)
	lost := make(chan core.Lost, leases)
	locks := newClient(t, server.Client(), core.WithTTL(ttl), core.WithHooks(core.Hooks{
		Lost: func(l core.Lost) { lost <- l },
	}))
	goroutines := runtime.NumGoroutine()
	took := lockMany(t, locks, leases)
	before := readCounters(t, server)
	grown := 0
	redistest.Eventually(t, 3*ttl, "two TTLs", func() bool {
		grown = max(grown, runtime.NumGoroutine()-goroutines)
		return len(lost) > 0 || time.Since(before.at) > 2*ttl
	})
	after := readCounters(t, server)
	if len(lost) > 0 {
		t.Fatalf("%d leases lost, one of them %+v", len(lost), <-lost)
	}
	renewals, reads, seconds := after.calls-before.calls, after.reads-before.reads, after.at.Sub(before.at).Seconds()
	t.Logf("%d leases taken in %v; %.0f renewals a second in %.0f round trips a second, %.1f to a round trip; "+
		"at most %d goroutines more", leases, took, float64(renewals)/seconds, float64(reads)/seconds,
		float64(renewals)/float64(reads), grown)
	if renewals < 5*leases { // of 6 in two TTLs
		t.Errorf("%d renewals of %d leases", renewals, leases)
	}
	if renewals < 10*reads {
		t.Errorf("%d renewals took %d round trips", renewals, reads)
	}
	if grown > 50 {
		t.Errorf("%d goroutines more than before", grown)
	}
	if n := locksIn(t, server); n != leases {
		t.Errorf("%d locks in Redis, want %d", n, leases)
	}
	if err := locks.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := locksIn(t, server); n != 0 {
		t.Errorf("%d locks in Redis after Close", n)
	}
}

func lockMany(t *testing.T, locks *core.Client, n int) time.Duration {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			for i := worker; i < n; i += 64 {
				if _, err := locks.Mutex(fmt.Sprint("n", i)).Lock(context.Background()); err != nil {
					t.Errorf("lock: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// counters are the server's own: scripts it ran, and reads from its sockets, each of which may bring many
// commands.
type counters struct {
	at           time.Time
	calls, reads int64
}

func readCounters(t *testing.T, server *redistest.Server) counters {
	t.Helper()
	reads, err := strconv.ParseInt(server.Info("stats", "total_reads_processed"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	stats := server.CommandStats()
	return counters{at: time.Now(), calls: stats["evalsha"].Calls + stats["eval"].Calls, reads: reads}
}

func locksIn(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	rdb := server.Client()
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
	server := redistest.Start(t)
	rdb := server.Client(func(o *redis.Options) { o.PoolSize = 4 })
	locks := newClient(t, rdb)
	var leases []*core.Lease
	for i := range 20 {
		leases = append(leases, mustLock(t, locks.Mutex(fmt.Sprint("kept", i)), core.WithTTL(2*time.Second)))
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
	began := time.Now()
	redistest.Eventually(t, within, "renewals over two TTLs", func() bool {
		for _, l := range leases {
			if l.Context().Err() == nil && l.ValidUntil().Before(began.Add(4*time.Second)) {
				return false
			}
		}
		return true
	})
	stop()
	all.Wait()
	for _, l := range leases {
		unlock(t, l)
	}
}
