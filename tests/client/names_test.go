package client_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var names = flag.Int64("names", 0, "how many names TestNamesLeaveNothing locks, also in a Cluster; 0: 2,000 on one server")

// TestNamesLeaveNothing locks and unlocks many names, once each, with all strategies. What Redis holds afterwards is
// the last token: one key, or one for each slot of a Cluster.
func TestNamesLeaveNothing(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		s := testkit.Start(t)
		lockNames(t, s.Client(), max(*names, 2_000), 1, s)
	})
	t.Run("Cluster", func(t *testing.T) {
		if *names == 0 {
			t.Skip("asked for by -names")
		}
		c := testkit.StartCluster(t, 3)
		lockNames(t, c.Client(), *names, 16_384, c.Masters...)
	})
}

// lockNames fails if more than so many tokens, or more than five megabytes, are left of n names.
func lockNames(t *testing.T, rdb redis.UniversalClient, n, tokens int64, servers ...*testkit.Server) {
	t.Helper()
	c := coretest.NewClient(t, rdb, core.WithInstance("")) // which is a key for each client, not for each name
	kinds := []core.Strategy{c.Mutex, c.Fair, c.Read, c.Write, c.FairRead, c.FairWrite}
	var next atomic.Int64
	callers := func(last int64) {
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				for i := next.Add(1); i <= last; i = next.Add(1) {
					lockOnce(t, kinds[i%6](fmt.Sprint("order:", i)))
				}
			})
		}
		all.Wait()
	}
	callers(1_000) // connections with their buffers, and the scripts
	keysBefore, bytesBefore := stored(t, servers)
	callers(1_000 + n)
	var keys, bytes int64
	testkit.Eventually(t, coretest.Within, "the locks to be gone", func() bool {
		keys, bytes = stored(t, servers)
		return keys <= tokens && bytes-bytesBefore < 5<<20
	})
	t.Logf("%d names: %d keys before and %d after, %+d bytes", n, keysBefore, keys, bytes-bytesBefore)
}

func lockOnce(t *testing.T, l *core.Lock) {
	t.Helper()
	ctx := context.Background()
	lease, err := l.TryLock(ctx)
	if err == nil {
		err = lease.Unlock(ctx)
	}
	if err != nil {
		t.Errorf("%s: %v", l.Name(), err)
	}
}

// stored returns how many keys servers hold, and the memory they use.
func stored(t *testing.T, servers []*testkit.Server) (keys, bytes int64) {
	t.Helper()
	for _, s := range servers {
		used, err := strconv.ParseInt(s.Info("memory", "used_memory"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		keys += s.Client().DBSize(context.Background()).Val()
		bytes += used
	}
	return keys, bytes
}
