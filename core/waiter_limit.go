package core

import (
	"fmt"
	"sync"
)

// defaultMaxWaiters is more than an application intends to have, and what a process can bear.
const defaultMaxWaiters = 10_000

// waiterLimit bounds how many callers wait for one name, whatever the strategy. Each name has its own count, so that a busy
// name does not affect callers of other names.
type waiterLimit struct {
	limit int

	mu      sync.Mutex
	waiting map[string]int // by the lock's key; only those with waiters
}

func newWaiterLimit(most int) *waiterLimit {
	return &waiterLimit{limit: most, waiting: make(map[string]int)}
}

// tryAdd reports whether one more caller may wait. If it returns true, the caller must call remove.
func (c *waiterLimit) tryAdd(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key] >= c.limit {
		return false
	}
	c.waiting[key]++
	return true
}

func (c *waiterLimit) remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key]--; c.waiting[key] == 0 {
		delete(c.waiting, key)
	}
}

// err is the error beyond the limit.
func (c *waiterLimit) err() error {
	return fmt.Errorf("%w: %d of this client do, see WithMaxWaiters", ErrTooManyWaiters, c.limit)
}
