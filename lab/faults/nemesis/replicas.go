package nemesis

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// replicaFaults replace masters and move slots.
var replicaFaults = []fault{
	server(43, "master killed before replication", crash(true), 0, 0.3).only(replicated).losing(Failover),
	server(44, "master frozen, replaced, and back", splitBrain, 0, 0.3).only(replicated).losing(Failover),
	server(45, "replica frozen under min-replicas-to-write", lonely, 0.5, 2.5).only(replicated),
	server(47, "planned failover by sentinels", planned, 0, 0.3).only(sentinels).losing(Failover),
	server(47, "master killed under sentinels", crash(false), 0, 0.3).only(sentinels).losing(Failover),
	server(48, "master of a cluster killed", crash(false), 0, 0.3).only(clusters).losing(Failover),
	server(49, "slot migrated", migrate, 0.3, 2).only(clusters),
	server(50, "failover in a cluster", handover, 0, 0.3).only(clusters),
}

// pair is a master and its replica.
type pair struct {
	master, replica *testkit.Server
	slot            int // of the master, in a Cluster
}

// pair chooses them, by a lock in a Cluster.
func (n *Nemesis) pair() pair {
	n.t.Helper()
	if s := n.d.Sentinel; s != nil {
		master := s.Master()
		for _, other := range s.Servers {
			if other != master {
				return pair{master: master, replica: other}
			}
		}
	}
	c := n.d.Cluster
	p := pair{slot: c.Slot(n.key())}
	p.master = c.Owner(p.slot)
	for _, s := range c.Servers() {
		if s != p.master && s.Info("replication", "role") == "slave" &&
			s.Info("replication", "master_port") == strconv.Itoa(p.master.Port()) {
			p.replica = s
		}
	}
	if p.replica == nil {
		n.t.Fatalf("%s has no replica", p.master.Addr())
	}
	return p
}

// names are the names of the locks, see package worker.
var names = []string{"{a}1", "b", "c", "d", "e", "f", "g", "l"}

// key is the key of one of them.
func (n *Nemesis) key() string { return "lock:" + names[n.random.IntN(len(names))] }

// replaced waits for another master.
func (n *Nemesis) replaced(p pair) {
	n.t.Helper()
	if n.d.Sentinel != nil {
		n.d.Sentinel.AwaitMaster(p.master)
	} else {
		n.d.Cluster.AwaitOwner(p.slot, p.master)
	}
}

// crash kills a master and lets another one take its place, which has not heard of what was written last if it is cut off.
func crash(cut bool) func(n *Nemesis) func() {
	return func(n *Nemesis) func() {
		p := n.pair()
		if cut {
			p.replica.CutReplication()
			n.sleep(n.ttl/10, n.ttl/2)
		}
		p.master.Kill()
		n.replaced(p)
		return func() {
			if cut {
				p.replica.RestoreReplication()
			}
			p.master.Restart()
			n.d.Settle()
		}
	}
}

// splitBrain brings back a master that was replaced: for a moment there are two.
func splitBrain(n *Nemesis) func() {
	p := n.pair()
	p.master.Pause()
	n.replaced(p)
	p.master.Resume()
	return n.d.Settle
}

func planned(n *Nemesis) func() {
	n.d.Sentinel.Failover()
	return n.d.Settle
}

func handover(n *Nemesis) func() {
	n.d.Cluster.Failover(n.pair().replica)
	return n.d.Settle
}

// lonely lets a master refuse writes because its replica does not acknowledge.
func lonely(n *Nemesis) func() {
	p := n.pair()
	at := n.d.Index(p.master)
	n.do(at, "config", "set", "min-replicas-max-lag", "1")
	if !n.do(at, "config", "set", "min-replicas-to-write", "1") {
		return nil
	}
	p.replica.Pause()
	time.Sleep(n.ttl)
	return func() {
		p.replica.Resume()
		n.insist(func() bool { return n.do(at, "config", "set", "min-replicas-to-write", "0") })
		n.d.Settle()
	}
}

// migrate moves a slot with a lock to another master, slowly.
func migrate(n *Nemesis) func() {
	p := n.pair()
	for _, i := range n.random.Perm(len(n.d.Servers)) {
		to := n.d.Servers[i]
		if to == p.master || to.Info("replication", "role") != "master" {
			continue
		}
		m := n.d.Cluster.BeginMigration(p.slot, to)
		return func() {
			m.End()
			n.d.Settle()
		}
	}
	return nil
}
