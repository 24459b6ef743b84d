package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// node is one server, with its batch queues. Renewals have a queue of their own, so that they never wait behind commands for
// which callers wait. Commands that replicas have to acknowledge have two more, so that a slow replica delays no others.
type node struct {
	commands      *batchQueue
	renewals      *batchQueue
	ackedCommands *batchQueue
	ackedRenewals *batchQueue
	pending       *Pending
	answers       atomic.Uint64 // of the server to batches and to commands on the direct path
}

// queueFor returns the queue of a command for which a caller waits.
func (n *node) queueFor(c *Command) *batchQueue {
	if c.Ack.Wanted() {
		return n.ackedCommands
	}
	return n.commands
}

// renewalQueueFor returns the queue of a renewal.
func (n *node) renewalQueueFor(c *Command) *batchQueue {
	if c.Ack.Wanted() {
		return n.ackedRenewals
	}
	return n.renewals
}

// Nodes finds the node of a key. Without a Cluster, all keys have the same node. In a Cluster there is one node for each
// master. Why: commands for different masters must not share a batch. A master that does not answer would delay the
// answers of the others. It is safe for concurrent use.
type Nodes struct {
	background *Background
	sendBatch  func([]*Command)
	only       *node                // of all keys without a Cluster; in a Cluster, of keys whose master is not known
	cluster    *redis.ClusterClient // nil without a Cluster

	topology *topology             // nil without a Cluster
	queries  *keepalive.Operations // queries for the slots of the Cluster

	known    atomic.Bool // true if the ClusterClient knows the owners of the slots
	learning atomic.Bool // true while learnSlots runs
	byAddr   sync.Map    // of *node, by the address of the master
}

// newNodes returns the nodes of rdb. Their batch queues send with sendBatch. It does no I/O. The caller must call Close.
func newNodes(rdb redis.UniversalClient, background *Background, sendBatch func([]*Command)) *Nodes {
	n := &Nodes{background: background, sendBatch: sendBatch, queries: keepalive.NewOperations()}
	n.only = n.newNode()
	if n.cluster, _ = rdb.(*redis.ClusterClient); n.cluster != nil {
		n.topology = &topology{cluster: n.cluster, queries: n.queries, onRefresh: func() {}, recovered: background.recovered}
	}
	return n
}

// newNode returns a node with empty queues.
func (n *Nodes) newNode() *node {
	return &node{
		commands: newBatchQueue(maxCommandsInFlight, n.sendBatch), renewals: newBatchQueue(maxRenewalsInFlight, n.sendBatch),
		ackedCommands: newBatchQueue(maxCommandsInFlight, n.sendBatch), ackedRenewals: newBatchQueue(maxRenewalsInFlight, n.sendBatch),
		pending: newPending(n.background),
	}
}

// answers returns a number that grows with the answers of the server that has the key.
func (n *Nodes) answers(key string) uint64 { return n.of(key).answers.Load() }

// onRefresh has f called after each refresh of the slots of a Cluster. There is one such function. It must be set before the
// first command. Without a Cluster, f is never called.
func (n *Nodes) onRefresh(f func()) {
	if n.topology != nil {
		n.topology.onRefresh = f
	}
}

// of returns the node of a key. Until the slots of the Cluster are known, all keys have the same node.
func (n *Nodes) of(key string) *node {
	master := n.master(key)
	if master == nil {
		return n.only // if no master owns the slot, the error of the command says so
	}
	addr := master.Options().Addr
	if known, ok := n.byAddr.Load(addr); ok {
		return known.(*node)
	}
	known, _ := n.byAddr.LoadOrStore(addr, n.newNode())
	return known.(*node)
}

// master returns the client of the master that owns a key's slot. It returns nil without a Cluster, or if the master is
// not known. It does no I/O. Why: go-redis reads the slots when it first needs them, which may take long, and keeps them
// up to date from then on.
func (n *Nodes) master(key string) *redis.Client {
	if n.cluster == nil {
		return nil
	}
	if !n.known.Load() {
		if n.learning.CompareAndSwap(false, true) && n.queries.Start() {
			go n.learnSlots(key)
		}
		return nil
	}
	master, err := n.cluster.MasterForKey(context.Background(), key)
	if err != nil {
		return nil
	}
	return master
}

// rerouted returns true if the key of c now belongs to another master than when c was submitted. It returns false if the
// master was not known then.
func (n *Nodes) rerouted(c *Command) bool { return c.node != n.only && n.of(c.key()) != c.node }

// RequestRefresh has the slots of the Cluster read again soon, at most once each minRefreshInterval. It does not wait.
// Without a Cluster it does nothing.
func (n *Nodes) RequestRefresh() {
	if n.topology != nil {
		n.topology.requestRefresh()
	}
}

// learnSlots has the ClusterClient read the slots. The caller must have called queries.Start and set learning.
func (n *Nodes) learnSlots(key string) {
	defer n.queries.Finish()
	defer n.learning.Store(false) // after a failure, the next command tries again
	n.background.recovered(func() {
		_, err := n.cluster.MasterForKey(context.Background(), key)
		n.known.Store(err == nil)
	})
}

// Close stops queries to the Cluster. It waits for those in flight, but not longer than limit. Commands may still be sent
// afterwards.
func (n *Nodes) Close(limit time.Duration) {
	if n.queries.BeginClose() {
		n.queries.Finish()
	}
	keepalive.Pause(context.Background(), limit, n.queries.Finished, nil)
}

// inCluster returns true if the keys are spread over the masters of a Cluster.
func (n *Nodes) inCluster() bool { return n.cluster != nil }
