package cronlock

import (
	"fmt"
	"sync/atomic"
	"time"
)

// skewed compares the clocks. Redis read its own at some time between asked and answered, by that of this replica.
func (j *job) skewed(at, asked, answered, server time.Time) {
	offset := clockOffset(asked, answered, server)
	if offset.Abs() <= j.config.maxSkew/2 {
		return
	}
	const silence = 10 * time.Minute // enough to find it in a log; the hook is called each time
	if elapsed(&j.skewLogged, answered, silence) {
		j.logger.Warn("holdfast: cronlock: the clock of this replica differs from Redis's; if all replicas say so, look at "+
			"Redis", "job", j.shown(), "offset", offset, "max", j.config.maxSkew)
	}
	side := "ahead of"
	if offset < 0 {
		side = "behind"
	}
	j.incident(j.config.context, at, IncidentSkew, fmt.Errorf("holdfast: cronlock: the clock of this replica is %v %s that of Redis",
		offset.Abs(), side))
}

// clockOffset is how far the clock of this replica is ahead for certain: a slow answer is no skew.
func clockOffset(asked, answered, server time.Time) time.Duration {
	least, most := asked.Sub(server), answered.Sub(server)
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}

// elapsed reports whether so much time has passed since last, which is then set to now. It returns true for one caller
// of several.
func elapsed(last *atomic.Int64, now time.Time, interval time.Duration) bool {
	before := last.Load()
	return now.Sub(time.Unix(0, before)).Abs() > interval && last.CompareAndSwap(before, now.UnixNano())
}
