package lockconformance

import (
	"errors"
	"sync"
)

// countdown closes its channel once what was expected has happened.
type countdown struct {
	mu   sync.Mutex
	left int
	over chan struct{}
}

// expect starts a count of n, forgetting an earlier one.
func (c *countdown) expect(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.over = n, make(chan struct{})
}

func (c *countdown) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.over)
	}
}

func (c *countdown) zero() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

func asError[E error](err error, target *E) bool { return errors.As(err, target) }
