package core

import (
	"fmt"
	"sync"
)

// defaultMaxWaiters is more than anybody means to have, and what a process can bear.
const defaultMaxWaiters = 10_000

// crowd bounds how many callers wait for one name, whatever they wait for it with. It is counted by name, so that one
// that many want does not turn those away who want another.
type crowd struct {
	most int

	mu      sync.Mutex
	waiting map[string]int // by the lock's key; only those for which somebody waits
}

func newCrowd(most int) *crowd {
	return &crowd{most: most, waiting: make(map[string]int)}
}

// enter reports whether one more may wait; it owes a leave then.
func (c *crowd) enter(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key] >= c.most {
		return false
	}
	c.waiting[key]++
	return true
}

func (c *crowd) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key]--; c.waiting[key] == 0 {
		delete(c.waiting, key)
	}
}

// err is what one more is told.
func (c *crowd) err() error {
	return fmt.Errorf("%w: %d of this client do, see WithMaxWaiters", ErrTooManyWaiters, c.most)
}
