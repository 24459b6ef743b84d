package asynqlock

import (
	"sync"
	"time"
)

// guess is taken for the time that a task of a key takes, until one has run.
const guess = time.Second

// mostPaces bounds for how many keys that is remembered.
const mostPaces = 10_000

// pace is how long the tasks of each key take, on the average of the last ones.
type pace struct {
	mu   sync.Mutex
	keys map[string]time.Duration
}

func (p *pace) add(hash string, held time.Duration) {
	const weight = 5 // the newest counts for a fifth
	held = max(held, time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.keys[hash]
	switch {
	case known:
		held = last + (held-last)/weight
	case p.keys == nil || len(p.keys) >= mostPaces:
		p.keys = make(map[string]time.Duration)
	}
	p.keys[hash] = held
}

func (p *pace) mean(hash string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mean, known := p.keys[hash]; known {
		return mean
	}
	return guess
}
