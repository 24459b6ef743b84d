package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
)

// node is one server, with its batch queues. Renewals have their own, so that they never wait behind user traffic.
// Commands that replicas have to acknowledge have two more, so that a slow replica delays nothing else.
type node struct {
	commands      *batchQueue
	renewals      *batchQueue
	ackedCommands *batchQueue
	ackedRenewals *batchQueue
	pending       *pending
}

func (n *node) queueFor(c *command) *batchQueue {
	if c.ack.wanted() {
		return n.ackedCommands
	}
	return n.commands
}

func (n *node) renewalQueueFor(c *command) *batchQueue {
	if c.ack.wanted() {
		return n.ackedRenewals
	}
	return n.renewals
}

// nodes finds the node of a key. Without a Cluster, all keys have the same one. Why one for each master: commands for
// different masters must not share a batch, because a master that does not answer would delay the answers of the others.
type nodes struct {
	keeper    *keeper
	sendBatch func([]*command)
	only      *node
	cluster   *redis.ClusterClient // nil elsewhere

	topology *topology             // nil elsewhere
	queries  *lifecycle.Operations // to the Cluster, for its slots

	known    atomic.Bool // the cluster client knows the owners of the slots
	learning atomic.Bool // it is reading them
	byAddr   sync.Map    // of *node, by the master's address
}

func newNodes(rdb redis.UniversalClient, sendBatch func([]*command)) *nodes {
	n := &nodes{sendBatch: sendBatch, queries: lifecycle.New()}
	n.only = n.newNode()
	if n.cluster, _ = rdb.(*redis.ClusterClient); n.cluster != nil {
		n.topology = &topology{cluster: n.cluster, queries: n.queries, onRefresh: func() {}, recovered: func(ask func()) { ask() }}
	}
	return n
}

func (n *nodes) newNode() *node {
	return &node{
		commands: newBatchQueue(maxCommandsInFlight, n.sendBatch), renewals: newBatchQueue(maxRenewalsInFlight, n.sendBatch),
		ackedCommands: newBatchQueue(maxCommandsInFlight, n.sendBatch), ackedRenewals: newBatchQueue(maxRenewalsInFlight, n.sendBatch),
		pending: newPending(n.keeper),
	}
}

// attach lets what is not confirmed be sent again on behalf of a keeper.
func (n *nodes) attach(k *keeper) {
	n.keeper = k
	n.only.pending.keeper = k
	if n.topology != nil {
		n.topology.recovered = k.recovered
	}
}

// of returns the node of a key. Until the slots of the Cluster are known, all keys have the same one.
func (n *nodes) of(key string) *node {
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
func (n *nodes) master(key string) *redis.Client {
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

// rerouted reports whether the key of c now belongs to another master than the one to which c was sent.
func (n *nodes) rerouted(c *command) bool { return c.node != n.only && n.of(c.key()) != c.node }

// requestRefresh has the slots of the Cluster read again soon. Without a Cluster it does nothing.
func (n *nodes) requestRefresh() {
	if n.topology != nil {
		n.topology.requestRefresh()
	}
}

func (n *nodes) learnSlots(key string) {
	defer n.queries.Finish()
	defer n.learning.Store(false) // if it failed, the next command asks again
	n.keeper.recovered(func() {
		_, err := n.cluster.MasterForKey(context.Background(), key)
		n.known.Store(err == nil)
	})
}

// close sends no more queries to the Cluster, and waits for those in flight, but not longer than limit.
func (n *nodes) close(limit time.Duration) {
	if n.queries.BeginClose() {
		n.queries.Finish()
	}
	lifecycle.Pause(context.Background(), limit, n.queries.Finished, nil)
}
