package asynqlock

import (
	"context"
	"sync"
	"time"
)

const (
	// relayTime is how long tasks that were called have to begin a run in this process, before others are called.
	relayTime = 2 * lookTime
	// relayTries bounds how often that is repeated. By then tasks come by themselves, when their delays are over.
	relayTries = 5
)

// relays look after lines whose next tasks were called. A task that was called may never come to the guard: it is past
// its deadline, a middleware in front fails, or its worker dies. Nothing would call those behind it.
type relays struct {
	mu   sync.Mutex
	keys map[string]*relay
}

type relay struct {
	timer *time.Timer
	tries int
}

// watch calls again after a while, unless stop is called before. It takes the place of an earlier watch of the key.
func (r *relays) watch(hash string, again func(context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = make(map[string]*relay)
	}
	if old := r.keys[hash]; old != nil {
		old.timer.Stop()
	}
	one := &relay{}
	one.timer = time.AfterFunc(relayTime, func() { r.fire(hash, one, again) })
	r.keys[hash] = one
}

func (r *relays) fire(hash string, one *relay, again func(context.Context)) {
	r.mu.Lock()
	current := r.keys[hash] == one
	if one.tries++; current && one.tries < relayTries {
		one.timer.Reset(relayTime)
	} else if current {
		delete(r.keys, hash)
	}
	r.mu.Unlock()
	if current {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		again(ctx)
	}
}

// stop is called when a task of the key begins to run: its end is what calls the next ones.
func (r *relays) stop(hash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.keys[hash]; old != nil {
		old.timer.Stop()
		delete(r.keys, hash)
	}
}
