package asynqlock

import (
	"sync"
	"time"
)

// recent is a set of names that are forgotten after some time.
type recent struct {
	keep time.Duration

	mu    sync.Mutex
	names map[string]time.Time // until when
	swept time.Time
}

func (r *recent) add(name string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = make(map[string]time.Time)
	}
	if now.Sub(r.swept) > r.keep {
		r.swept = now
		for other, until := range r.names {
			if until.Before(now) {
				delete(r.names, other)
			}
		}
	}
	r.names[name] = now.Add(r.keep)
}

func (r *recent) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

func (r *recent) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.names[name])
}
