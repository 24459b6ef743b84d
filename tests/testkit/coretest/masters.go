package coretest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// masters is a set of independent servers for one test.
type byMaster struct {
	Servers []*testkit.Server
	Looks   []*redis.Client // of the test itself, one to each
}

func StartMasters(t testing.TB, n int, opts ...testkit.Option) byMaster {
	t.Helper()
	var m byMaster
	for range n {
		s := testkit.Start(t, opts...)
		m.Servers, m.Looks = append(m.Servers, s), append(m.Looks, s.Client())
	}
	return m
}

func (m byMaster) Clients(edit ...func(*redis.Options)) []redis.UniversalClient {
	nodes := make([]redis.UniversalClient, len(m.Servers))
	for i, s := range m.Servers {
		nodes[i] = s.Client(edit...)
	}
	return nodes
}

// Redlock connects a process of its own. Each server has time enough to answer on a busy machine.
func (m byMaster) Redlock(t testing.TB, opts ...core.Option) *core.Redlock {
	t.Helper()
	return NewRedlock(t, m.Clients(), append([]core.Option{core.WithNodeTimeout(time.Second)}, opts...)...)
}

func NewRedlock(t testing.TB, nodes []redis.UniversalClient, opts ...core.Option) *core.Redlock {
	t.Helper()
	r, err := core.NewRedlock(nodes, opts...)
	if err != nil {
		t.Fatalf("NewRedlock: %v", err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// Holders counts the servers on which the key is held.
func (m byMaster) Holders(key string) int {
	n := 0
	for _, rdb := range m.Looks {
		n += int(rdb.Exists(context.Background(), key).Val())
	}
	return n
}

func (m byMaster) AwaitHolders(t testing.TB, key string, n int) {
	t.Helper()
	testkit.Eventually(t, Within, "servers to hold or free "+key, func() bool { return m.Holders(key) == n })
}

// AwaitEpochs returns once all masters know the configuration epochs of each other. A slot that is given to a master which
// does not know its owner's yet may be claimed back by an old message, and then belongs to no caller.
func AwaitEpochs(t testing.TB, cluster *testkit.Cluster) {
	t.Helper()
	var masters []*redis.Client
	for _, s := range cluster.Masters {
		masters = append(masters, s.Client())
	}
	testkit.Eventually(t, Within, "all to know the epochs", func() bool {
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

// ServedElsewhere returns a master to which the slot does not belong.
func ServedElsewhere(cluster *testkit.Cluster, slot int) *testkit.Server {
	for _, s := range cluster.Masters {
		if s != cluster.Owner(slot) {
			return s
		}
	}
	return nil
}

// LacksShards skips tests of what servers before Redis 7 do not have.
func LacksShards(t testing.TB, cluster *testkit.Cluster) {
	t.Helper()
	if err := cluster.Masters[0].Client().Do(context.Background(), "PUBSUB", "SHARDNUMSUB").Err(); err != nil {
		t.Skip("this server has no sharded pub/sub")
	}
}
