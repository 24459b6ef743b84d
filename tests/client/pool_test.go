package client_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestConnectionsAreGivenBack: after many locks in a row, all connections are back in the pool of the caller, and a pool of one
// connection is free for others at once.
func TestConnectionsAreGivenBack(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	for _, size := range []int{1, 4, 10} {
		rdb := server.Client(func(o *redis.Options) { o.PoolSize = size })
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
		for range 30 {
			coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
			if err := rdb.Ping(t.Context()).Err(); err != nil {
				t.Errorf("pool of %d: %v", size, err)
			}
		}
		testkit.Eventually(t, coretest.Within, "all connections in the pool", func() bool {
			stats := rdb.PoolStats()
			return stats.TotalConns == stats.IdleConns
		})
	}
}
