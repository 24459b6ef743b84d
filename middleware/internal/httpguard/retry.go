package httpguard

import (
	"math/rand/v2"
	"time"
)

const (
	conflictRetry = 2 // seconds at most
	outageRetry   = 5
)

// afterConflict returns when to come back to a key that another request holds. Most runs are over by then. The lease of
// the other run would be a bad guess: it only says when a crashed run will be out of the way.
func afterConflict() time.Duration { return upTo(conflictRetry) }

func afterOutage() time.Duration { return upTo(outageRetry) }

// upTo returns a random number of whole seconds, so that clients that were refused together do not come back together.
func upTo(most int64) time.Duration {
	return time.Duration(1+rand.Int64N(most)) * time.Second
}

// wholeSeconds rounds up, for a time that is certain.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
