package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// masters is a set of independent servers for one test.
type byMaster struct {
	servers []*testkit.Server
	looks   []*redis.Client // of the test itself, one to each
}

func startMasters(t testing.TB, n int, opts ...testkit.Option) byMaster {
	t.Helper()
	var m byMaster
	for range n {
		s := testkit.Start(t, opts...)
		m.servers, m.looks = append(m.servers, s), append(m.looks, s.Client())
	}
	return m
}

func (m byMaster) clients(edit ...func(*redis.Options)) []redis.UniversalClient {
	nodes := make([]redis.UniversalClient, len(m.servers))
	for i, s := range m.servers {
		nodes[i] = s.Client(edit...)
	}
	return nodes
}

// redlock connects a process of its own. Each server has time enough to answer on a busy machine.
func (m byMaster) redlock(t testing.TB, opts ...core.Option) *core.Redlock {
	t.Helper()
	return newRedlock(t, m.clients(), append([]core.Option{core.WithNodeTimeout(time.Second)}, opts...)...)
}

func newRedlock(t testing.TB, nodes []redis.UniversalClient, opts ...core.Option) *core.Redlock {
	t.Helper()
	r, err := core.NewRedlock(nodes, opts...)
	if err != nil {
		t.Fatalf("NewRedlock: %v", err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// holders counts the servers on which the key is held.
func (m byMaster) holders(key string) int {
	n := 0
	for _, rdb := range m.looks {
		n += int(rdb.Exists(context.Background(), key).Val())
	}
	return n
}

func (m byMaster) awaitHolders(t testing.TB, key string, n int) {
	t.Helper()
	testkit.Eventually(t, within, "servers to hold or free "+key, func() bool { return m.holders(key) == n })
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
