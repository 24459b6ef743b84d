package waiters

import (
	"sync"
)

// Limit bounds how many callers wait for one name, whatever the strategy. Each name has its own count, so that a busy
// name does not affect callers of other names.
type Limit struct {
	Most int

	mu      sync.Mutex
	waiting map[string]int // by the lock's key; only those with waiters
}

// NewLimit returns a limit of that many callers for one name.
func NewLimit(most int) *Limit {
	return &Limit{Most: most, waiting: make(map[string]int)}
}

// TryAdd reports whether one more caller may wait. If it returns true, the caller must call remove.
func (c *Limit) TryAdd(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key] >= c.Most {
		return false
	}
	c.waiting[key]++
	return true
}

// Remove ends what TryAdd has added.
func (c *Limit) Remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key]--; c.waiting[key] == 0 {
		delete(c.waiting, key)
	}
}

// Count returns how many callers wait for a name.
func (c *Limit) Count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[key]
}
