package core

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
)

const (
	// tries is how often a command is sent at least before an outage is called one.
	tries = 4
	// Pauses between tries double from the first to the longest, each shortened by up to half at random.
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
	// forever is the patience of those who wait until their context ends.
	forever = time.Duration(math.MaxInt64)
	// longestRequestPause is the longest between those of a request, which endures an outage for some seconds only.
	longestRequestPause = 250 * time.Millisecond
	// longestMigrationPause is the longest while a slot moves from one master of a Cluster to another, so that its locks can be
	// used soon after.
	longestMigrationPause = 100 * time.Millisecond
)

// outage counts failures in a row.
type outage struct {
	failures int
	began    time.Time
}

// pause returns how long to wait before the next try, longest at most; false if there have been enough of them and
// patience is used up.
func (o *outage) pause(patience, longest time.Duration) (time.Duration, bool) {
	if o.failures == 0 {
		o.began = time.Now()
	}
	o.failures++
	if o.failures >= tries && time.Since(o.began) >= patience {
		return 0, false
	}
	pause := min(firstPause<<min(o.failures-1, 10), longest)
	return pause/2 + rand.N(pause/2), true
}

// retry calls try until it succeeds, its error is not retryable, ctx ends, or both the tries and patience are used up.
// It returns the last error. While a slot migrates, patience is at least outagePatience.
func retry(ctx context.Context, patience time.Duration, retryable func(error) bool, try func() error) error {
	var unanswered, move outage
	for {
		err := try()
		if err == nil || !retryable(err) || ctx.Err() != nil {
			return err
		}
		var time time.Duration
		var more bool
		if slotMigrating(err) {
			unanswered = outage{} // Redis answers
			time, more = move.pause(max(patience, outagePatience), longestMigrationPause)
		} else {
			time, more = unanswered.pause(patience, longestPause)
		}
		if !more {
			return err
		}
		lifecycle.Pause(ctx, time, nil, nil)
		if ctx.Err() != nil {
			return err
		}
	}
}
