//go:build holdfast_simulation

package simulate_test

import (
	"sync"
	"time"
)

// slewRate is how much faster or slower NTP lets a clock run at most while it corrects it: 500 ppm. A lease allows for
// twice as much, see "The lease" in docs/guarantees.md.
const slewRate = 500e-6

// clock is the wall clock of a server. It follows the clock of the bubble, except for steps and slews.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration // at the moment since
	since time.Time     // when the rate began
	rate  float64       // by which it runs faster than the clock of the bubble
}

// offset is how far the clock is ahead of the bubble's.
func (c *clock) offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offsetLocked()
}

func (c *clock) offsetLocked() time.Duration {
	return c.ahead + time.Duration(float64(time.Since(c.since))*c.rate)
}

func (c *clock) now() time.Time { return time.Now().Add(c.offset()) }

func (c *clock) step(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
}

// slew lets the clock run at another rate from now on.
func (c *clock) slew(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead, c.since, c.rate = c.offsetLocked(), time.Now(), rate
}
