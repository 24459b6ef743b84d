package cronlock

import (
	"time"

	"github.com/robfig/cron/v3"
)

// align gives "@every" ticks that are the same in every process. robfig counts them from when each process was started;
// here they are the multiples of the interval since 1970. The schedules of cron expressions are the same everywhere
// already.
func align(s cron.Schedule) cron.Schedule {
	if every, ok := s.(cron.ConstantDelaySchedule); ok {
		return aligned{max(int64(every.Delay/time.Second), 1)}
	}
	return s
}

// aligned is an interval. [cron.Every] makes whole seconds of it, one at least.
type aligned struct{ seconds int64 }

func (a aligned) Next(t time.Time) time.Time {
	return time.Unix((t.Unix()/a.seconds+1)*a.seconds, 0).In(t.Location())
}

// period is the time from a tick to the next one, the longest if there is none.
func period(s cron.Schedule, tick time.Time) time.Duration {
	next := s.Next(tick)
	if next.IsZero() {
		return longestPeriod
	}
	return min(max(next.Sub(tick), 1), longestPeriod)
}

const longestPeriod = 366 * 24 * time.Hour

// missed returns the latest tick after last that is not after now, and how many there were. The zone of last is that in
// which a schedule without one of its own is read.
func missed(s cron.Schedule, last, now time.Time) (latest time.Time, n int) {
	for tick := s.Next(last); !tick.IsZero() && !tick.After(now); tick = s.Next(tick) {
		latest = tick
		n++
	}
	return latest, n
}
