package middleware

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

const (
	shortestRetry = time.Second
	longestRetry  = time.Minute // without jitter
	outageRetry   = 5           // seconds
)

// afterLease returns when to come back for a held lock. The rest of the lease is the honest guess: the holder
// may be done sooner or renew it, which nobody knows.
func afterLease(err error) time.Duration {
	var refused *core.NotAcquiredError
	if !errors.As(err, &refused) {
		return shortestRetry
	}
	return jittered(refused.RetryAfter)
}

// jittered rounds up to whole seconds within the bounds, plus up to a quarter, so that those who were refused
// together do not come back together.
func jittered(d time.Duration) time.Duration {
	d = min(max(d, shortestRetry), longestRetry)
	seconds := int64((d + time.Second - 1) / time.Second)
	return time.Duration(seconds+rand.Int64N(seconds/4+1)) * time.Second
}

func afterOutage() time.Duration {
	return time.Duration(1+rand.Int64N(outageRetry)) * time.Second
}
