package asynqlock

import (
	"cmp"
	"context"
	"sync"
	"time"
)

const (
	// relayInterval is how long called tasks have to begin a run in this process before the next ones are called.
	relayInterval = 2 * lookTime
	// relayLimit bounds how many calls of a relay reach no further task. Why: another server may run a task of the key
	// for hours, and each call costs the first tasks of the line a deferral.
	relayLimit = 5
)

// relays repeat the calls of lines whose next tasks were called. Why: a called task may never arrive at the guard. Its
// queue is paused, its deadline has passed, a middleware in front fails, or its worker crashed. No run would then end
// that calls the tasks behind it.
type relays struct {
	interval time.Duration // relayInterval if 0

	mu   sync.Mutex
	keys map[string]*relay
}

// relay repeats the calls of one key.
type relay struct {
	timer  *time.Timer
	vain   int // calls that reached no further task
	called map[string]struct{}
}

// watch calls again after each interval until stop is called, or until again has reached no further task relayLimit
// times. It replaces an earlier watch of the key. The function again returns the tasks that it has made due.
func (r *relays) watch(hash string, again func(context.Context) []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = make(map[string]*relay)
	}
	if old := r.keys[hash]; old != nil {
		old.timer.Stop()
	}
	one := &relay{called: make(map[string]struct{})}
	one.timer = time.AfterFunc(r.every(), func() { r.fire(hash, one, again) })
	r.keys[hash] = one
}

func (r *relays) every() time.Duration { return cmp.Or(r.interval, relayInterval) }

func (r *relays) fire(hash string, one *relay, again func(context.Context) []string) {
	if !r.watches(hash, one) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	made := again(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys[hash] != one {
		return
	}
	if !one.reaches(made) {
		one.vain++
	}
	if one.vain < relayLimit {
		one.timer.Reset(r.every())
	} else {
		delete(r.keys, hash)
	}
}

// watches returns false if a relay was stopped or replaced.
func (r *relays) watches(hash string, one *relay) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[hash] == one
}

// reaches adds tasks to those that the relay has made due, and returns true if one of them is new. A relay that steps
// over many tasks in a paused queue so reaches the tasks behind them.
func (o *relay) reaches(tasks []string) bool {
	before := len(o.called)
	for _, task := range tasks {
		o.called[task] = struct{}{}
	}
	return len(o.called) > before
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
