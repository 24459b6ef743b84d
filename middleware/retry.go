package middleware

import (
	"math/rand/v2"
	"time"
)

const (
	shortestRetry = time.Second
	firstRetry    = time.Second      // if nothing is known about runs
	longestGrowth = 10 * time.Second // of what is known about one that goes on
	longestRetry  = time.Minute      // without jitter
	outageRetry   = 5                // seconds
)

// jittered rounds up to whole seconds within the bounds, plus up to a quarter, so that those who were refused
// together do not come back together.
func jittered(d time.Duration) time.Duration {
	d = min(max(d, shortestRetry), longestRetry)
	seconds := int64((d + time.Second - 1) / time.Second)
	return time.Duration(seconds+rand.Int64N(seconds/4+1)) * time.Second
}

// wholeSeconds rounds up, without jitter: for a time that is certain.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

func afterOutage() time.Duration {
	return time.Duration(1+rand.Int64N(outageRetry)) * time.Second
}
