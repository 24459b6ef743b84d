package keepalive

import (
	"sync"
	"time"
)

// logInterval is how long no renewal has to fail before the log says that they succeed again. It is also how often
// the log says that they fail. Some leases may fail while others are renewed, for instance those of one master of a Cluster.
const logInterval = 10 * time.Second

// Log decides which failed renewals the log mentions. The zero value is a log that has mentioned none.
type Log struct {
	mu       sync.Mutex
	failed   Instant // the last one that failed
	warned   Instant // the last warning; zero if renewals are known to succeed
	failures int     // since then
}

// Note takes note of a renewal. It returns how many failures the log should mention, 0 for none. It returns again as true if the
// log should mention that renewals succeed again.
func (r *Log) Note(now Instant, err error) (failures int, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		again = r.warned != 0 && now.Sub(r.failed) >= logInterval
		if again {
			r.warned, r.failures = 0, 0
		}
		return 0, again
	}
	r.failed = now
	r.failures++
	if r.warned != 0 && now.Sub(r.warned) < logInterval {
		return 0, false
	}
	failures = r.failures
	r.warned, r.failures = now, 0
	return failures, false
}
