package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// gateway stands for the service that takes the money. There is one for all replicas, and its contract allows so many
// calls at a time. It does not refuse more: it counts how many there were, as a referee.
type gateway struct {
	time time.Duration // of a call, at least

	mu    sync.Mutex
	calls int
	now   int // calls in progress
	peak  int // the most of them
}

// take takes the money. That lasts longer than all else in the shop.
func (g *gateway) take(ctx context.Context) error {
	g.mu.Lock()
	g.calls++
	g.now++
	g.peak = max(g.peak, g.now)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.now--
	}()
	timer := time.NewTimer(g.time + rand.N(g.time))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// counts returns how many calls there were, and how many at most at a time.
func (g *gateway) counts() (calls, peak int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls, g.peak
}
