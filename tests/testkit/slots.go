package testkit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Slot returns the hash slot of a key.
func (c *Cluster) Slot(key string) int {
	c.t.Helper()
	for _, s := range c.Servers() {
		reply, err := s.ask(fmt.Sprintf("CLUSTER KEYSLOT %q", key), time.Second)
		if slot, found := strings.CutPrefix(reply, ":"); err == nil && found {
			n, _ := strconv.Atoi(slot)
			return n
		}
	}
	c.t.Fatalf("testkit: no server tells the slot of %q", key)
	return 0
}

// Owner returns the master that a slot belongs to, as all servers say that answer.
func (c *Cluster) Owner(slot int) *Server {
	c.t.Helper()
	return c.AwaitOwner(slot, nil)
}

// AwaitOwner returns the owner of a slot once all servers that answer say that it is another one than the given, for
// instance after that was killed. See [DownAfter].
func (c *Cluster) AwaitOwner(slot int, not *Server) *Server {
	c.t.Helper()
	var owner *Server
	await(c.t, "the Cluster to agree on the owner of slot "+strconv.Itoa(slot), func() bool {
		owner = c.owner(slot)
		return owner != nil && owner != not
	})
	return owner
}

// handoverTimeout is what servers give a handover before they let it be, with some room.
const handoverTimeout = 6 * time.Second

// Failover lets a replica take the place of its master, which hands over to it, and returns when all know. No server
// votes for a replica of the same master twice within two times [DownAfter], so with a long one each master can be
// replaced only once.
func (c *Cluster) Failover(replica *Server) {
	c.t.Helper()
	slot, old := c.served(replica)
	c.shout(replica) // nor does one vote for whom it does not know to be a replica
	await(c.t, "all to know the replica", func() bool { return c.isReplica(replica, old) })
	c.whisper(replica)
	var asked time.Time
	await(c.t, "the replica to take over", func() bool {
		if time.Since(asked) > handoverTimeout {
			asked = time.Now()
			replica.do("cluster", "failover")
		}
		owner := c.owner(slot)
		return owner != nil && owner != old
	})
}

// served returns a slot that a replica keeps a copy of, and its master.
func (c *Cluster) served(replica *Server) (slot int, master *Server) {
	c.t.Helper()
	port := replica.replicates()
	for _, n := range viewWithin(replica, startTimeout) {
		if n.port == port && len(n.slots) > 0 {
			slot = n.slots[0][0]
			return slot, c.Owner(slot)
		}
	}
	c.t.Fatalf("testkit: %s is no replica of a master that owns slots", replica.addr)
	return 0, nil
}

// AwaitInSync returns once all servers that were not killed serve, and the replicas among them have all that
// their master has now, if it was not killed.
func (c *Cluster) AwaitInSync() {
	c.t.Helper()
	for _, s := range c.Servers() {
		if !s.running() {
			continue
		}
		await(c.t, "the Cluster to serve and be in sync", func() bool {
			info, _ := s.roundTrip("CLUSTER INFO")
			state, _ := infoField(info, "cluster_state")
			master := c.byPort(s.replicates())
			return state == "ok" && (master == nil || !master.running() || s.inSync(master))
		})
	}
}

// replicates returns the port of the server's master, empty if it is one.
func (s *Server) replicates() string {
	port, _ := infoField(s.info("replication"), "master_port")
	return port
}

func (c *Cluster) byPort(port string) *Server {
	for _, s := range c.Servers() {
		if portOf(s) == port {
			return s
		}
	}
	return nil
}
