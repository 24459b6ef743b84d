package core

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// tries is how often a command is sent at least before an outage is called one.
	tries = 4
	// Pauses between tries double from the first to the longest, each shortened by up to half at random.
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// outage counts failures in a row.
type outage struct {
	failures int
	began    time.Time
}

// pause returns how long to wait before the next try; false if there have been enough of them and patience
// is used up.
func (o *outage) pause(patience time.Duration) (time.Duration, bool) {
	if o.failures == 0 {
		o.began = time.Now()
	}
	o.failures++
	if o.failures >= tries && time.Since(o.began) >= patience {
		return 0, false
	}
	pause := min(firstPause<<min(o.failures-1, 10), longestPause)
	return pause/2 + rand.N(pause/2), true
}

// persist repeats try after transient errors until it is answered, ctx ends, or both the tries and patience
// are used up. It returns the last error.
func (c *Client) persist(ctx context.Context, patience time.Duration, try func() error) error {
	var trouble outage
	for {
		err := try()
		if !transient(err) {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		pause, again := trouble.pause(patience)
		if !again {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
