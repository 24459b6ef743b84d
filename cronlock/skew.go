package cronlock

import "time"

// skewed compares the clocks. Redis read its own at some time between asked and answered, by that of this replica.
func (j *job) skewed(asked, answered, server time.Time) {
	offset := clockOffset(asked, answered, server)
	if offset.Abs() <= j.config.maxSkew/2 {
		return
	}
	const silence = 10 * time.Minute // enough to find it in a log; the hook counts
	if last := j.warned.Load(); answered.Sub(time.Unix(0, last)).Abs() > silence &&
		j.warned.CompareAndSwap(last, answered.UnixNano()) {
		j.config.logger.Warn("holdfast: cronlock: the clock of this replica is off",
			"job", j.name, "offset", offset, "max", j.config.maxSkew)
	}
	if j.config.hooks.Skewed != nil {
		j.config.hooks.Skewed(offset)
	}
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
