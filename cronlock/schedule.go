package cronlock

import (
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// align gives "@every" ticks that are the same in every process. robfig counts them from when each process was started;
// here they are the multiples of the interval since 1970. The schedules of cron expressions are the same everywhere
// already.
func align(s cron.Schedule) cron.Schedule {
	if every, ok := s.(cron.ConstantDelaySchedule); ok {
		return aligned{every.Delay}
	}
	return s
}

// aligned is an interval, in whole seconds.
type aligned struct{ interval time.Duration }

func (a aligned) Next(t time.Time) time.Time {
	seconds := int64(a.interval / time.Second)
	return time.Unix((t.Unix()/seconds+1)*seconds, 0).In(t.Location())
}

// ticks is a schedule that knows which of its ticks a job was started for. The scheduler starts the job first and asks
// for the next tick then, or the other way round as the job sees it, so two of them have to be kept.
type ticks struct {
	schedule cron.Schedule
	begin    func() // called when the scheduler asks for the first time

	mu      sync.Mutex
	pending time.Time // that the scheduler waits for
	fired   time.Time // the one before it
	begun   bool
}

// Next is called by the scheduler only.
func (s *ticks) Next(t time.Time) time.Time {
	next := s.schedule.Next(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		s.begin()
	}
	if !s.pending.IsZero() && !s.pending.After(t) {
		s.fired = s.pending // otherwise it was never started: the scheduler was stopped
	}
	s.pending = next
	return next
}

// due returns the tick for which a job is started now.
func (s *ticks) due(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pending.IsZero() && !s.pending.After(now) {
		return s.pending // the scheduler has not asked for the next one yet
	}
	return s.fired
}

// period is the time from a tick to the next one, the longest if there is none.
func period(s cron.Schedule, tick time.Time) time.Duration {
	next := s.Next(tick)
	if next.IsZero() {
		return longestPeriod
	}
	return min(next.Sub(tick), longestPeriod)
}

const longestPeriod = 366 * 24 * time.Hour

// missed returns the latest tick after last that is not after now, and how many there were; at most so many are looked
// at, so that a schedule of seconds does not hold anybody up after a year. Then it is the latest of those.
func missed(s cron.Schedule, last, now time.Time) (latest time.Time, n int) {
	const most = 100_000
	for tick := s.Next(last); !tick.IsZero() && !tick.After(now) && n < most; tick = s.Next(tick) {
		latest = tick
		n++
	}
	return latest, n
}
