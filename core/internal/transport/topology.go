package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

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
