package asynqlock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// places are where tasks in this process wait for their turn, per key in the order of the line. Only the first one of a
// key asks for the lock, so that they get it in that order whatever the lock's own order is.
type places struct {
	mu   sync.Mutex
	keys map[string][]*place
}

// place is a task that waits.
type place struct {
	all    *places
	hash   string
	member string
	came   int64
	turn   chan struct{} // gets a value when the task may have become the first one
	yield  func()        // ends the request for the lock; nil while there is none
	late   bool          // a task that came before was put in front while the lock was being requested
}

// take puts a task into its place. It owes a leave.
func (all *places) take(hash, member string, came int64) *place {
	p := &place{all: all, hash: hash, member: member, came: came, turn: make(chan struct{}, 1)}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.keys == nil {
		all.keys = make(map[string][]*place)
	}
	queue := all.keys[hash]
	i, _ := slices.BinarySearchFunc(queue, p, func(a, b *place) int { return int(a.came - b.came) })
	if i == 0 && len(queue) > 0 && queue[0].yield != nil {
		queue[0].late = true
		queue[0].yield()
	}
	all.keys[hash] = slices.Insert(queue, i, p)
	all.wake(hash)
	return p
}

// wake tells the first task of a key; mu is held.
func (all *places) wake(hash string) {
	if queue := all.keys[hash]; len(queue) > 0 {
		select {
		case queue[0].turn <- struct{}{}:
		default:
		}
	}
}

// has reports whether a task waits here.
func (all *places) has(hash, member string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.ContainsFunc(all.keys[hash], func(p *place) bool { return p.member == member })
}

func (p *place) leave() {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	queue := slices.DeleteFunc(p.all.keys[p.hash], func(other *place) bool { return other == p })
	if p.all.keys[p.hash] = queue; len(queue) == 0 {
		delete(p.all.keys, p.hash)
	}
	p.all.wake(p.hash)
}

// await returns true when the task is the first one, and false if the time is over before that or ctx ends.
func (p *place) await(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		if p.first() {
			return true
		}
		select {
		case <-p.turn:
		case <-timer.C:
			return p.first()
		case <-ctx.Done():
			return false
		}
	}
}

func (p *place) first() bool {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	return p.all.keys[p.hash][0] == p
}

// request calls ask, which requests the lock, unless the task is not the first one any more. It reports whether another
// task was put in front meanwhile: then ask was cancelled, and the task waits for its turn again.
func (p *place) request(ctx context.Context, ask func(context.Context)) (overtaken bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.all.mu.Lock()
	if p.all.keys[p.hash][0] != p {
		p.all.mu.Unlock()
		return true
	}
	p.yield, p.late = cancel, false
	p.all.mu.Unlock()
	defer func() {
		p.all.mu.Lock()
		defer p.all.mu.Unlock()
		p.yield, overtaken = nil, p.late
	}()
	ask(ctx)
	return false
}
