package transport

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
)

const (
	// OutagePatience is how long a waiting Lock endures a Redis that does not answer.
	OutageLimit = 5 * time.Second
	// tries is how often a command is sent at least before an outage is called one.
	minTries = 4
	// Pauses between tries double from the first to the longest, each shortened by up to half at random.
	FirstRetryInterval = 10 * time.Millisecond
	maxRetryInterval   = time.Second
	// Forever is the patience of callers that wait until their context ends.
	NoLimit = time.Duration(math.MaxInt64)
	// LongestRequestPause is the longest between those of a request, which endures an outage for some seconds only.
	MaxRequestRetryInterval = 250 * time.Millisecond
	// LongestMigrationPause is the longest while a slot moves from one master of a Cluster to another, so that its locks can be
	// used soon after.
	MaxMigrationRetryInterval = 100 * time.Millisecond
)

// Outage counts failures in a row.
type Outage struct {
	failures int
	Began    time.Time
}

// Pause returns how long to wait before the next try, longest at most; false if there have been enough of them and
// patience is used up.
func (o *Outage) Pause(limit, maxInterval time.Duration) (time.Duration, bool) {
	if o.failures == 0 {
		o.Began = time.Now()
	}
	o.failures++
	if o.failures >= minTries && time.Since(o.Began) >= limit {
		return 0, false
	}
	interval := min(FirstRetryInterval<<min(o.failures-1, 10), maxInterval)
	return interval/2 + rand.N(interval/2), true
}

// Retry calls try until it succeeds, its error is not retryable, ctx ends, or both the tries and patience are used up.
// It returns the last error. While a slot migrates, patience is at least OutagePatience.
func Retry(ctx context.Context, limit time.Duration, retryable func(error) bool, try func() error) error {
	var outage, migration Outage
	for {
		err := try()
		if err == nil || !retryable(err) || ctx.Err() != nil {
			return err
		}
		var interval time.Duration
		var more bool
		if SlotMigrating(err) {
			outage = Outage{} // Redis answers
			interval, more = migration.Pause(max(limit, OutageLimit), MaxMigrationRetryInterval)
		} else {
			interval, more = outage.Pause(limit, maxRetryInterval)
		}
		if !more {
			return err
		}
		lifecycle.Pause(ctx, interval, nil, nil)
		if ctx.Err() != nil {
			return err
		}
	}
}

// RetryUntilAnswered sends an idempotent command until it is answered or ctx ends. Each try has a timeout, so that the
// next one can use another connection.
func RetryUntilAnswered(ctx context.Context, command func(context.Context) error) error {
	timeout := FirstAnswerTimeout
	return Retry(ctx, 0, Transient, func() error {
		tryCtx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		timeout = min(2*timeout, AnswerTimeout) // tries can be many while a slot moves
		return command(tryCtx)
	})
}
