package acquire

import "sync"

// Limit bounds how many callers wait for one name, whatever the strategy. Each name has its own count, so that a busy
// name does not affect callers of other names. It is safe for concurrent use.
//
// Why a limit: each waiter keeps a goroutine, and mostly a request of a user, in memory. While the lock is held, they would
// pile up without end.
type Limit struct {
	Most int // callers for one name; must not be changed after the first tryAdd

	mu      sync.Mutex
	waiting map[string]int // by the lock's key, without zeros, so names that are not used take no memory; guarded by mu
}

// NewLimit returns a limit of that many callers for one name.
func NewLimit(most int) *Limit {
	return &Limit{Most: most, waiting: make(map[string]int)}
}

// tryAdd counts one more caller that waits for a name. It returns false, and counts nothing, if there are as many as may be.
// If it returns true, the caller must call remove once, when it waits no more.
func (c *Limit) tryAdd(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key] >= c.Most {
		return false
	}
	c.waiting[key]++
	return true
}

// remove ends the wait of one caller that tryAdd has counted. It returns true if no other caller waits for the name.
func (c *Limit) remove(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key]--; c.waiting[key] == 0 {
		delete(c.waiting, key)
		return true
	}
	return false
}

// count returns how many callers wait for a name.
func (c *Limit) Count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[key]
}
