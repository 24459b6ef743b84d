package transport

import (
	"context"
	"errors"
	"net"
	"strings"
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

const (
	// minRefreshInterval is the shortest interval between two queries for the slots of a Cluster.
	minRefreshInterval = 250 * time.Millisecond
	// maxRefreshes bounds the queries in flight. Each goes to a random node, and waits for several seconds if that node does
	// not answer. Why more than one: the next one may meet a node that answers.
	maxRefreshes = 8
)

// topology has go-redis read the slots of a Cluster again when the outcome of commands suggests that they have moved. Why:
// by itself go-redis reads them once a minute, and after a redirection. A master that has crashed does not redirect.
type topology struct {
	cluster   *redis.ClusterClient
	queries   *keepalive.Operations
	onRefresh func()            // called after each query
	recovered func(call func()) // calls a function that runs hooks of the user's client, see Background

	mu sync.Mutex

	// Guarded by mu.
	refreshedAt time.Time
	inFlight    int
	timer       *time.Timer // set while a query is due
}

// requestRefresh has the slots read as soon as minRefreshInterval has passed since the last query. It does not wait.
func (t *topology) requestRefresh() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Until(t.refreshedAt.Add(minRefreshInterval)), t.refresh)
	}
}

// refresh has go-redis read the slots. The timer calls it. It does nothing if maxRefreshes queries are in flight, or if Nodes
// was closed.
func (t *topology) refresh() {
	t.mu.Lock()
	t.timer = nil
	t.refreshedAt = time.Now()
	if t.inFlight >= maxRefreshes || !t.queries.Start() {
		t.mu.Unlock()
		return
	}
	defer t.queries.Finish()
	t.inFlight++
	t.mu.Unlock()
	// ForEachMaster begins with a query of its own. Why not ReloadState: it would wait for the query that is in flight,
	// however long that one waits for a frozen node.
	t.recovered(func() {
		_ = t.cluster.ForEachMaster(context.Background(), func(context.Context, *redis.Client) error { return nil })
	})
	t.mu.Lock()
	t.inFlight--
	t.mu.Unlock()
	t.onRefresh()
}

// suggestsMove returns true if err may mean that another master owns the slot now.
func suggestsMove(err error) bool {
	if err == nil {
		return false
	}
	var dial *net.OpError
	switch Classify(err) {
	case Unknown:
		return !errors.Is(err, context.Canceled)
	case NotExecuted:
		for _, prefix := range []string{"READONLY", "MASTERDOWN", "CLUSTERDOWN", "MOVED"} {
			if hasCode(err, prefix) {
				return true
			}
		}
		return errors.As(err, &dial)
	}
	return false
}

// IsOneServer returns true if rdb is known to send all commands to one server or Sentinel group.
func IsOneServer(rdb redis.UniversalClient) bool {
	_, ok := rdb.(*redis.Client)
	return ok
}

// SameSlot returns true if one script may take all these keys, of which there must be one at least. It returns false if a
// Cluster has them in several slots. It also returns false for clients that are not of go-redis or spread keys over several
// servers, because their rules are not known.
func SameSlot(rdb redis.UniversalClient, keys []string) bool {
	switch rdb.(type) {
	case *redis.Client:
		return true
	case *redis.ClusterClient:
		for _, key := range keys[1:] {
			if Slot(key) != Slot(keys[0]) {
				return false
			}
		}
		return true
	}
	return false
}

// Slot returns the hash slot of a key: CRC16 (XMODEM) of its hash tag, modulo 16384. The hash tag is the part between the
// first "{" and the next "}". If there is no such part, or it is empty, the whole key is the hash tag. Source: Redis Cluster
// specification, key distribution model.
func Slot(key string) uint16 {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc % 16384
}
