package topology

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/faults/worker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Kind names a topology.
type Kind string

// The topologies.
const (
	Memory      Kind = "memory"       // one server that keeps nothing
	AOF         Kind = "aof"          // one server with an append-only file
	Clock       Kind = "clock"        // the same, and its clock can be set
	Sentinel    Kind = "sentinel"     // a master, a replica, three sentinels
	SentinelAck Kind = "sentinel-ack" // the same, with WithReplicaAck
	Cluster     Kind = "cluster"      // three masters with a replica each
	ClusterAck  Kind = "cluster-ack"  // the same, with WithReplicaAck
	Redlock     Kind = "redlock"      // five masters, each with an append-only file
)

// Kinds are all topologies, those first of which a short run takes a part. Clock is last: it cannot run beside others.
var Kinds = []Kind{AOF, Redlock, Memory, Sentinel, Cluster, SentinelAck, ClusterAck, Clock}

// downAfter is for how long a server of a deployment may be silent before it is given up.
const downAfter = 1500 * time.Millisecond

// Deployment is the servers of one topology, private to a test.
type Deployment struct {
	Kind     Kind
	Servers  []*testkit.Server
	Sentinel *testkit.Sentinel // nil if there are no sentinels
	Cluster  *testkit.Cluster  // nil if it is none
	Shift    *Shift            // of the server's clock; nil if that cannot be set

	admins []*redis.Client
	links  [][]*testkit.Relay // of each worker, in the order of the servers
}

// Start runs the servers until the test ends, with links for so many workers.
func Start(t testing.TB, kind Kind, workers int) *Deployment {
	t.Helper()
	d := &Deployment{Kind: kind}
	protected := testkit.Config("enable-protected-configs", "yes") // to make BGSAVE fail
	switch kind {
	case Memory:
		d.Servers = append(d.Servers, testkit.Start(t, protected))
	case AOF:
		d.Servers = append(d.Servers, testkit.Start(t, testkit.AOF(), protected))
	case Clock:
		d.Shift = newShift(t)
		d.Servers = append(d.Servers, testkit.Start(t, testkit.AOF(), protected))
	case Sentinel, SentinelAck:
		d.Sentinel = testkit.StartSentinel(t, testkit.DownAfter(downAfter), protected)
		d.Servers = d.Sentinel.Servers
	case Cluster, ClusterAck:
		d.Cluster = testkit.StartCluster(t, 3, testkit.Replicas(1), testkit.DownAfter(downAfter), protected)
		d.Servers = d.Cluster.Servers()
	case Redlock:
		for range 5 {
			d.Servers = append(d.Servers, testkit.Start(t, testkit.AOF(), protected))
		}
	default:
		t.Fatalf("no topology %q", kind)
	}
	for _, s := range d.Servers {
		d.admins = append(d.admins, s.Client(impatient))
	}
	for range workers {
		d.links = append(d.links, testkit.NewRelays(t, d.Servers...).All())
	}
	return d
}

// impatient is for clients of the nemesis, which does not wait for a server that it has broken itself.
func impatient(o *redis.Options) {
	o.MaxRetries, o.ReadTimeout, o.DialTimeout = -1, 2*time.Second, 2*time.Second
}

// Link tells a worker the way to the servers.
func (d *Deployment) Link(worker int) worker.Link { return d.link(d.links[worker]) }

func (d *Deployment) link(relays []*testkit.Relay) worker.Link {
	l := worker.Link{Kind: worker.Single, Relays: make(map[string]string)}
	for i, relay := range relays {
		l.Relays[d.Servers[i].Addr()] = relay.Addr()
	}
	switch d.Kind {
	case Sentinel, SentinelAck:
		l.Kind = worker.Sentinel
		for _, s := range d.Sentinel.Sentinels {
			l.Addrs = append(l.Addrs, s.Addr())
		}
	case Cluster, ClusterAck:
		l.Kind = worker.Cluster
		for _, s := range d.Servers {
			l.Addrs = append(l.Addrs, s.Addr())
		}
	default:
		for _, relay := range relays {
			l.Addrs = append(l.Addrs, relay.Addr())
		}
		l.Direct = [2]string{d.Servers[0].Network(), d.Servers[0].Addr()}
	}
	if d.Kind == Redlock {
		l.Kind = worker.Redlock
	}
	return l
}

// Acknowledging tells by how many replicas grants are acknowledged.
func (d *Deployment) Acknowledging() int {
	if d.Kind == SentinelAck || d.Kind == ClusterAck {
		return 1
	}
	return 0
}

// Links are the relays of one worker, or of all if it is negative, to one server, or to all if that is negative.
func (d *Deployment) Links(worker, server int) (found []*testkit.Relay) {
	for w, relays := range d.links {
		for s, relay := range relays {
			if (worker < 0 || w == worker) && (server < 0 || s == server) {
				found = append(found, relay)
			}
		}
	}
	return found
}

// Admin is a client of one server that passes no relay.
func (d *Deployment) Admin(server int) *redis.Client { return d.admins[server] }

// Index returns the place of a server.
func (d *Deployment) Index(s *testkit.Server) int { return slices.Index(d.Servers, s) }

// Masters are the servers that answer, and say that they are masters.
func (d *Deployment) Masters(ctx context.Context) (masters []int) {
	for i, admin := range d.admins {
		reply, err := admin.Do(ctx, "role").Slice()
		if err == nil && len(reply) > 0 && reply[0] == "master" {
			masters = append(masters, i)
		}
	}
	return masters
}

// Settle returns when all servers agree and are in sync. All must run.
func (d *Deployment) Settle() {
	if d.Sentinel != nil {
		d.Sentinel.AwaitSettled()
	}
	if d.Cluster != nil {
		d.Cluster.AwaitInSync()
	}
}
