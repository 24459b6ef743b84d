package testkit

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots is the number of hash slots of a Cluster, by its specification.
const slots = 16384

// Cluster is a Redis Cluster, private to a test. Start it with [StartCluster].
type Cluster struct {
	// Masters own the slots at the start, in order, each an equal range of them.
	Masters []*Server
	// Replicas are the replicas of the masters in turn: the first is of the first master, the next of the next.
	Replicas []*Server

	t         testing.TB
	downAfter time.Duration
}

// StartCluster runs a Cluster of that many masters, and of their [Replicas], until the test ends, and returns when
// all agree on it and the replicas are in sync. A master that is not given up yet, see [DownAfter], does not keep the
// others from serving. The options apply to all servers.
func StartCluster(t testing.TB, masters int, opts ...Option) *Cluster {
	t.Helper()
	cfg := newConfig(append([]Option{Replicas(0)}, opts...))
	opts = slices.Concat([]Option{
		clusterNode(),
		Config("cluster-enabled", "yes"),
		Config("cluster-node-timeout", strconv.FormatInt(cfg.downAfter.Milliseconds(), 10)),
		Config("cluster-replica-validity-factor", "0"), // a replica that was cut off is good enough
		Config("cluster-require-full-coverage", "no"),
	}, opts)
	c := &Cluster{t: t, downAfter: cfg.downAfter}
	for range masters {
		c.Masters = append(c.Masters, Start(t, opts...))
	}
	for range masters * cfg.replicas {
		c.Replicas = append(c.Replicas, Start(t, opts...))
	}
	c.rank()
	for i, s := range c.Masters {
		own := []any{"cluster", "addslots"} // Redis before 7.0 takes no ranges
		for slot := slots * i / masters; slot < slots*(i+1)/masters; slot++ {
			own = append(own, slot)
		}
		s.do(own...)
	}
	c.introduce()
	for i, s := range c.Replicas {
		c.attach(s, c.Masters[i%masters])
	}
	await(t, "the Cluster to agree", c.complete)
	for _, s := range c.Replicas {
		c.whisper(s)
	}
	c.AwaitInSync()
	return c
}

// rank gives each server a config epoch of its own, which says whose claim to a slot is the latest. Else they all begin
// with the same, and settle that in the seconds after they have met by taking higher ones. A master that is killed
// after it took one has no heir, if those who vote have heard of that and its replica has not; if nobody has, its heir
// is given the same one, and loses the slots again to a master that comes back.
func (c *Cluster) rank() {
	c.t.Helper()
	for i, s := range c.Servers() {
		s.do("cluster", "set-config-epoch", i+1)
	}
}

// introduce lets each server know all others, which takes seconds by hearsay.
func (c *Cluster) introduce() {
	c.t.Helper()
	for i, s := range c.Servers() {
		for _, other := range c.Servers()[:i] {
			s.do("cluster", "meet", "127.0.0.1", portOf(other))
		}
	}
}

// attach makes a server the replica of a master once it knows it.
func (c *Cluster) attach(s, master *Server) {
	c.t.Helper()
	id := master.nodeID()
	await(c.t, "the replica to know its master", func() bool {
		reply, _ := s.roundTrip("CLUSTER REPLICATE " + id)
		return reply == "+OK"
	})
	c.shout(s)
}

// shout lets a replica talk to each other server twice a second. They hear otherwise what it is now at some time
// within half of the time after which a silent one is given up. It gives up nobody by that: this takes masters.
func (c *Cluster) shout(replica *Server) {
	c.t.Helper()
	replica.do("config", "set", "cluster-node-timeout", min(time.Second, c.downAfter).Milliseconds())
}

// whisper ends shout.
func (c *Cluster) whisper(replica *Server) {
	c.t.Helper()
	replica.do("config", "set", "cluster-node-timeout", c.downAfter.Milliseconds())
}

// Servers returns the masters and the replicas.
func (c *Cluster) Servers() []*Server { return slices.Concat(c.Masters, c.Replicas) }

// For returns the same Cluster for another test that uses it: its clients and relays end with that test.
func (c *Cluster) For(t testing.TB) *Cluster {
	shared := *c
	shared.t = t
	return &shared
}

// Client returns a new client of the Cluster, which is closed when the test ends. Each edit may change its options.
func (c *Cluster) Client(edit ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	opts := &redis.ClusterOptions{}
	for _, s := range c.Servers() {
		opts.Addrs = append(opts.Addrs, s.Addr())
	}
	for _, fn := range edit {
		fn(opts)
	}
	gate := &gate{dial: opts.Dialer}
	opts.Dialer = gate.Dial
	rdb := redis.NewClusterClient(opts)
	c.t.Cleanup(func() {
		thaw(c.Servers())
		gate.close()
		_ = rdb.Close()
	})
	return rdb
}

// nodeID returns what a node of a Cluster is called by the others.
func (s *Server) nodeID() string {
	s.t.Helper()
	id, err := s.roundTrip("CLUSTER MYID")
	if err != nil {
		s.t.Fatalf("testkit: name of node %s: %v", s.addr, err)
	}
	return id
}

func portOf(s *Server) string { return strconv.Itoa(s.Port()) }

// clusterNode makes the server listen on a port that has its bus port free as well.
func clusterNode() Option {
	return optionFunc(func(cfg *config) { cfg.tcp, cfg.bus = true, true })
}
