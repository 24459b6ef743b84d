package asynqlock

import (
	"sync"
	"time"
)

// pace is how long a task takes, on the average of the last ones.
type pace struct {
	mu   sync.Mutex
	last time.Duration
}

// guess is taken for the time that a task takes, until one has run.
const guess = time.Second

func (p *pace) add(held time.Duration) {
	const weight = 5 // the newest counts for a fifth
	held = max(held, time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == 0 {
		p.last = held
	}
	p.last += (held - p.last) / weight
}

func (p *pace) mean() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == 0 {
		return guess
	}
	return p.last
}
