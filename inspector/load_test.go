package inspector_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

var liveLocks = flag.Int("live", 20_000, "how many locks TestManyLocks holds")

// seedLocks makes n locks that are held for an hour, as a Mutex in its compact state has them.
func seedLocks(t testing.TB, rdb redis.UniversalClient, prefix string, n int) {
	t.Helper()
	ctx := context.Background()
	for done := 0; done < n; {
		_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for range min(5000, n-done) {
				key := fmt.Sprint("lock:", prefix, done)
				pipe.HSet(ctx, key, fmt.Sprint("00000000-0000-4000-8000-000000000000:", done+1), 1,
					"mode", fmt.Sprint(time.Hour.Milliseconds(), " ", time.Now().UnixMicro()))
				pipe.PExpire(ctx, key, time.Hour)
				done++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyLocks: the first page beside many live locks sends no more commands than a constant, and none that blocks Redis. With
// -v it logs the time that the server needed, beside 10 locks: the figures in lab/RESULTS.md.
func TestManyLocks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, *liveLocks} {
		server := testkit.Start(t)
		rdb := server.Client()
		seedLocks(t, rdb, "order:", n)
		s := newSite(t, newClient(t, server.Client()))
		s.get(http.StatusOK, "lock?name=order:1") // loads the scripts, and looks at the settings of Redis
		for range 10 {
			measure(t, server, rdb, n, s, "")
		}
		measure(t, server, rdb, n, s, "lock?name=order:1")
		measure(t, server, rdb, n, s, "records")
		s.page.Close()
	}
}

// measure loads a page, checks how many commands it sent, and logs what they cost the server.
func measure(t *testing.T, server *testkit.Server, rdb *redis.Client, locks int, s *site, path string) {
	t.Helper()
	ctx := context.Background()
	rdb.ConfigSet(ctx, "slowlog-log-slower-than", "0")
	rdb.SlowLogReset(ctx)
	rdb.ConfigResetStat(ctx)
	began := time.Now()
	s.get(http.StatusOK, path)
	took := time.Since(began)
	stats := server.CommandStats()
	scans, scripts := stats["scan"].Calls, stats["evalsha"].Calls+stats["eval"].Calls
	if scans > 16 || scripts > 400 || stats["keys"].Calls > 0 {
		t.Errorf("/%s with %d locks: %d SCANs, %d scripts, %d KEYS", path, locks, scans, scripts, stats["keys"].Calls)
	}
	usec := stats["scan"].Usec + stats["evalsha"].Usec + stats["eval"].Usec + stats["info"].Usec + stats["get"].Usec
	var slowest redis.SlowLog
	for _, entry := range rdb.SlowLogGet(ctx, -1).Val() {
		if entry.Args[0] != "config" && entry.Duration > slowest.Duration {
			slowest = entry
		}
	}
	t.Logf("%d locks, /%s: answered in %v, %d SCANs, %d scripts, %d µs of Redis, the longest command %v", locks, path,
		took.Round(10*time.Microsecond), scans, scripts, usec, slowest.Duration)
}
