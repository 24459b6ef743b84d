package core

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// reloadEvery is how often a Cluster is asked at most who owns which slots.
	reloadEvery = 250 * time.Millisecond
	// maxReloads is how many of these questions may be open. Each goes to a node at random, and to one that does not
	// answer it goes in vain for several seconds.
	maxReloads = 8
)

// topology makes go-redis ask who owns which slots of a Cluster when commands show that this may have changed. By itself
// it asks when a node sends it on to another one, which a master that died does not do, and once a minute.
type topology struct {
	cluster *redis.ClusterClient
	queries *tasks
	onNews  func() // called after each answer

	shielded func(ask func()) // calls the user's client, whose hooks may panic

	mu      sync.Mutex
	askedAt time.Time
	open    int
	timer   *time.Timer // set while a question is due
}

// doubt asks soon, without waiting for the answer.
func (t *topology) doubt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Until(t.askedAt.Add(reloadEvery)), t.ask)
	}
}

func (t *topology) ask() {
	t.mu.Lock()
	t.timer = nil
	t.askedAt = time.Now()
	if t.open >= maxReloads || !t.queries.begin() {
		t.mu.Unlock()
		return
	}
	defer t.queries.end()
	t.open++
	t.mu.Unlock()
	// This begins with a reload of its own. ReloadState would wait for the reload that is under way, however long that
	// one waits for a node that is frozen.
	t.shielded(func() {
		_ = t.cluster.ForEachMaster(context.Background(), func(context.Context, *redis.Client) error { return nil })
	})
	t.mu.Lock()
	t.open--
	t.mu.Unlock()
	t.onNews()
}

// misled reports whether an error may mean that somebody else owns the slot now.
func misled(err error) bool {
	if err == nil {
		return false
	}
	var dial *net.OpError
	switch classify(err) {
	case unknown:
		return !errors.Is(err, context.Canceled)
	case notRun:
		for _, prefix := range []string{"READONLY", "MASTERDOWN", "CLUSTERDOWN", "MOVED"} {
			if redis.HasErrorPrefix(err, prefix) {
				return true
			}
		}
		return errors.As(err, &dial)
	}
	return false
}
