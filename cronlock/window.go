package cronlock

import (
	"time"

	"github.com/robfig/cron/v3"
)

// mostRemembered bounds how many ticks of a job are remembered for the sake of options.
const mostRemembered = 20_000

// checkWindow refuses options that would fill Redis: a tick is remembered for twice the time in which it may start, and
// for the time by which a clock may be ahead. The answer is the same at every time of the day: ticks are counted from
// the first one after a fixed time.
func (j *job) checkWindow(now time.Time) error {
	first := j.schedule.Next(anchor(now.Location()))
	if first.IsZero() {
		if first = j.schedule.Next(now); first.IsZero() {
			return nil
		}
	}
	option, window := "WithStartDeadline", j.deadline(first)
	if j.config.catchUp > window {
		option, window = "WithCatchUp", j.config.catchUp
	}
	kept := 2*window + j.config.maxSkew
	if j.config.maxSkew > 2*window {
		option, window = "WithMaxSkew", j.config.maxSkew
	}
	if tooDense(j.schedule, first, kept) {
		return invalid("job %q: %s(%v): more than %d ticks of this schedule would be remembered, "+
			"those of %v", j.name, option, window, mostRemembered, kept)
	}
	return nil
}

// tooDense reports whether there are too many ticks within so long after one.
func tooDense(s cron.Schedule, tick time.Time, window time.Duration) bool {
	end := tick.Add(window)
	for range mostRemembered {
		next := s.Next(tick)
		if !isDue(next, end) || !next.After(tick) {
			return false
		}
		tick = next
	}
	return true
}

// checkFailover refuses a deadline until which no other replica could notice that a runner has died.
func (j *job) checkFailover() error {
	if limit := j.config.deadline; j.config.attempts > 1 && limit > 0 && limit <= j.ttl() {
		return invalid("job %q: WithFailover(%d) with WithStartDeadline(%v): no other replica can "+
			"take over, because the lease of a crashed runner expires after %v", j.name, j.config.attempts, limit, j.ttl())
	}
	return nil
}

func (j *job) ttl() time.Duration {
	if j.config.TTL > 0 || j.locks == nil {
		return j.config.TTL
	}
	return j.locks.TTL()
}
