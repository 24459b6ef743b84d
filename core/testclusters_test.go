package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// awaitEpochs returns once all masters know the configuration epochs of each other. A slot that is given to a master which
// does not know that of its owner yet may be claimed back by an old message, and then belongs to no caller.
func awaitEpochs(t testing.TB, cluster *testkit.Cluster) {
	t.Helper()
	var masters []*redis.Client
	for _, s := range cluster.Masters {
		masters = append(masters, s.Client())
	}
	testkit.Eventually(t, within, "all to know the epochs", func() bool {
		epochs := make(map[string]string)
		for _, rdb := range masters {
			for line := range strings.Lines(rdb.ClusterNodes(context.Background()).Val()) {
				node := strings.Fields(line) // name, address, flags, master, ping, pong, epoch
				if known, ok := epochs[node[0]]; ok && known != node[6] {
					return false
				}
				epochs[node[0]] = node[6]
			}
		}
		return true
	})
}

// servedElsewhere returns a master to which the slot does not belong.
func servedElsewhere(cluster *testkit.Cluster, slot int) *testkit.Server {
	for _, s := range cluster.Masters {
		if s != cluster.Owner(slot) {
			return s
		}
	}
	return nil
}

// lacksShards skips tests of what servers before Redis 7 do not have.
func lacksShards(t testing.TB, cluster *testkit.Cluster) {
	t.Helper()
	if err := cluster.Masters[0].Client().Do(context.Background(), "PUBSUB", "SHARDNUMSUB").Err(); err != nil {
		t.Skip("this server has no sharded pub/sub")
	}
}

// calls returns how often the masters of a Cluster have run a command.
func calls(cluster *testkit.Cluster, command string) (n int64) {
	for _, s := range cluster.Masters {
		n += s.CommandStats()[command].Calls
	}
	return n
}
