package redistest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// slots is the number of hash slots of a Cluster, by its specification.
const slots = 16384

// busOffset is how far the port on which nodes talk to each other lies above that for clients.
const busOffset = 10000

// Cluster is a Redis Cluster of masters, private to a test. Start it with [StartCluster].
type Cluster struct {
	// Masters own the slots in order, each an equal range of them.
	Masters []*Server
}

// StartCluster runs a Cluster of that many masters until the test ends, and returns when all agree on it. A master
// that does not answer is not given up by the others within a test, and does not keep them from serving.
func StartCluster(t testing.TB, masters int) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range masters {
		c.Masters = append(c.Masters, Start(t, clusterNode(),
			Config("cluster-enabled", "yes"),
			Config("cluster-node-timeout", "60000"),
			Config("cluster-require-full-coverage", "no")))
	}
	ctx := context.Background()
	for i, s := range c.Masters {
		rdb := s.Client()
		from, to := slots*i/masters, slots*(i+1)/masters
		if err := rdb.ClusterAddSlotsRange(ctx, from, to-1).Err(); err != nil {
			t.Fatalf("redistest: slots of master %d: %v", i, err)
		}
		if err := rdb.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(c.Masters[0].Port())).Err(); err != nil {
			t.Fatalf("redistest: introduce master %d: %v", i, err)
		}
	}
	for _, s := range c.Masters {
		rdb := s.Client()
		Eventually(t, 2*startTimeout, "the Cluster to agree", func() bool {
			info := rdb.ClusterInfo(ctx).Val()
			state, _ := infoField(info, "cluster_state")
			assigned, _ := infoField(info, "cluster_slots_assigned")
			known, _ := infoField(info, "cluster_known_nodes")
			return state == "ok" && assigned == strconv.Itoa(slots) && known == strconv.Itoa(masters)
		})
	}
	return c
}

// Client returns a new client of the Cluster, which is closed when the test ends. Each edit may change its options.
func (c *Cluster) Client(edit ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	opts := &redis.ClusterOptions{}
	for _, s := range c.Masters {
		opts.Addrs = append(opts.Addrs, s.Addr())
	}
	for _, fn := range edit {
		fn(opts)
	}
	rdb := redis.NewClusterClient(opts)
	c.Masters[0].t.Cleanup(func() {
		for _, s := range c.Masters {
			s.thaw()
		}
		_ = rdb.Close()
	})
	return rdb
}

// clusterNode makes the server listen on a port that has its bus port free as well.
func clusterNode() Option {
	return optionFunc(func(cfg *config) { cfg.tcp, cfg.bus = true, true })
}

// freeBusAddr is freeAddr for a node of a Cluster. The addresses it has tried stay taken until it returns, so that
// each try is another one.
func freeBusAddr() (string, error) {
	for range 1000 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		defer ln.Close()
		port := ln.Addr().(*net.TCPAddr).Port
		bus, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+busOffset))
		if err == nil {
			_ = bus.Close()
			return ln.Addr().String(), nil
		}
	}
	return "", fmt.Errorf("no free pair of ports, %d apart", busOffset)
}
