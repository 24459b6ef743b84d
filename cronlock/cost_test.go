package cronlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// scriptsOf returns how many scripts a server has run.
func scriptsOf(server *testkit.Server) int {
	n := 0
	for name, stat := range server.CommandStats() {
		if name == "evalsha" || name == "eval" {
			n += int(stat.Calls)
		}
	}
	return n
}

// TestCostOfATick measures what docs/cron.md says of it: scripts per tick and replica, and bytes at rest.
func TestCostOfATick(t *testing.T) {
	t.Parallel()
	const ticks = 200
	for _, test := range []struct {
		name                     string
		opts                     []cronlock.Option
		runs, takes, bytesAtRest float64 // at most
	}{
		{"by default", nil, 5, 2, 1700},
		{"with AllowOverlap", []cronlock.Option{cronlock.AllowOverlap()}, 3, 2, 1700},
		{"with failover", []cronlock.Option{cronlock.WithFailover(2)}, 5, 2, 1700},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			opts := append(test.opts, cronlock.WithMaxSkew(time.Hour))
			a := newReplica(t, newClient(t, server.Client()), idle, opts...)
			b := newReplica(t, newClient(t, server.Client()), idle, opts...)
			now := time.Now().Add(10 * time.Minute) // so that no tick is late, however slow the machine is
			come := func(r *replica) float64 {
				before := scriptsOf(server)
				for i := range ticks {
					cronlock.Compare(r.cron, "job", now.Add(time.Duration(i)*time.Millisecond))
				}
				return float64(scriptsOf(server)-before) / ticks
			}
			cronlock.Compare(a.cron, "job", now.Add(-time.Millisecond))
			keys, bytes := memory(t, server)
			runs := come(a)
			keysAfter, bytesAfter := memory(t, server)
			takes := come(b)
			atRest := float64(bytesAfter-bytes) / ticks
			t.Logf("%.2f scripts to run a tick, %.2f to find it taken, %.0f bytes in %.1f keys", runs, takes, atRest,
				float64(keysAfter-keys)/ticks)
			if runs > test.runs+0.1 || takes > test.takes+0.1 || atRest > test.bytesAtRest {
				t.Errorf("at most %v, %v and %v are documented", test.runs, test.takes, test.bytesAtRest)
			}
		})
	}
}

// memory returns how many keys there are and the sum of their bytes.
func memory(t *testing.T, server *testkit.Server) (keys int, bytes int64) {
	t.Helper()
	rdb := server.Client()
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		keys, bytes = keys+1, bytes+rdb.MemoryUsage(t.Context(), key, 0).Val()
	}
	return keys, bytes
}
