package middleware

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostContended bounds how many keys a contention remembers.
	mostContended = 1024
	// contentionMemory is how long a refusal counts for the next one of its key. Clients that heed their Retry-After come
	// back within it.
	contentionMemory = 2 * longestRetry
)

// contention knows since when requests of a key are refused, at this guard in this process, because another one runs. A
// run that has lasted for some time is expected to last about as long again. It is safe for concurrent use. The zero value
// is ready.
type contention struct {
	size  atomic.Int64 // of keys, so that end costs nothing where no key is contended
	mu    sync.Mutex
	spans map[string]span // by hash
}

// span is the time from the first refusal to the last one.
type span struct{ first, last time.Time }

// refuse notes a refusal and returns how long the key has been refused for.
func (c *contention) refuse(hash string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	s, known := c.spans[hash]
	switch {
	case c.spans == nil, !known && len(c.spans) >= mostContended:
		c.spans = make(map[string]span) // forgetting costs one early retry for each key
		fallthrough
	case !known, now.Sub(s.last) > contentionMemory:
		s.first = now
	}
	s.last = now
	c.spans[hash] = s
	c.size.Store(int64(len(c.spans)))
	return now.Sub(s.first)
}

// end notes that a request of the key may run: what was known is about another run.
func (c *contention) end(hash string) {
	if c.size.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.spans, hash)
	c.size.Store(int64(len(c.spans)))
}
