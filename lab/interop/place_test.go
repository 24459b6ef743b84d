//go:build unix

package interop_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// place is where the locks are, and beside it the server of the test.
type place struct {
	mode    string
	addrs   string // that clients are told
	rdb     redis.UniversalClient
	referee *testkit.Server
}

// places are the deployments, by name.
var places = map[string]func(*testing.T) *place{"single": single, "sentinel": sentinel, "cluster": cluster}

func single(t *testing.T) *place {
	t.Helper()
	server := testkit.Start(t, testkit.TCP())
	return &place{"single", server.Addr(), server.Client(), testkit.Start(t, testkit.TCP())}
}

func sentinel(t *testing.T) *place {
	t.Helper()
	s := testkit.StartSentinel(t)
	return &place{"sentinel", addresses(s.Sentinels), s.Client(), testkit.Start(t, testkit.TCP())}
}

func cluster(t *testing.T) *place {
	t.Helper()
	return inCluster(t, testkit.StartCluster(t, 3, testkit.Replicas(1)))
}

func inCluster(t *testing.T, c *testkit.Cluster) *place {
	t.Helper()
	return &place{"cluster", addresses(c.Servers()), c.Client(), testkit.Start(t, testkit.TCP())}
}

// masters are three servers that know nothing of each other, with a referee of their own.
func masters(t *testing.T) (*place, []*testkit.Server) {
	t.Helper()
	var servers []*testkit.Server
	for range 3 {
		servers = append(servers, testkit.Start(t, testkit.TCP(), testkit.AOF()))
	}
	return &place{"masters", addresses(servers), servers[0].Client(), testkit.Start(t, testkit.TCP())}, servers
}

func addresses(servers []*testkit.Server) string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return strings.Join(all, ",")
}

// channel is where releases of a lock are announced.
func channel(name string) string {
	if strings.Contains(name, "{") {
		return "redisson_lock__channel:" + name
	}
	return "redisson_lock__channel:{" + name + "}"
}

// listeners counts those who listen for a release, in the way that clients of the place do.
func (p *place) listeners(t *testing.T, name string) int64 {
	t.Helper()
	ctx := t.Context()
	ask := func(rdb redis.UniversalClient) (n int64) {
		n = rdb.PubSubNumSub(ctx, channel(name)).Val()[channel(name)]
		return n + rdb.PubSubShardNumSub(ctx, channel(name)).Val()[channel(name)]
	}
	c, ok := p.rdb.(*redis.ClusterClient)
	if !ok {
		return ask(p.rdb)
	}
	master, err := c.MasterForKey(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return ask(master)
}

func (p *place) awaitListener(t *testing.T, name string) {
	t.Helper()
	testkit.Eventually(t, within, "somebody to listen for the release of "+name, func() bool {
		return p.listeners(t, name) > 0
	})
}
