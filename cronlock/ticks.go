package cronlock

import (
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// ticks is a schedule that knows which of its ticks a job was started for. The scheduler starts the job first and asks
// for the next tick then, or the other way round as the job sees it, so two of them have to be kept.
type ticks struct {
	schedule cron.Schedule
	// look makes the moment when the scheduler begins a tick of its own, so that the job is started once to look for
	// missed ones: by the scheduler, which waits for it, and through the wrappers of the user, which recover panics.
	look bool

	mu      sync.Mutex
	start   time.Time // that moment
	pending time.Time // the tick that the scheduler waits for
	ready   time.Time // when it can start the job for that, at the earliest
	fired   time.Time // the tick before it
}

// Next is called by the scheduler, for the present time or the latest past one.
func (s *ticks) Next(t time.Time) time.Time { return s.next(t, time.Now()) }

func (s *ticks) next(t, now time.Time) time.Time {
	next := s.schedule.Next(t)
	if t.After(now) {
		return next // this is not the scheduler but somebody who lists the ticks to come
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.look && s.start.IsZero() {
		s.start, next = t, t
	}
	if !s.pending.IsZero() && !s.pending.After(t) {
		s.fired = s.pending // otherwise it was never started: the scheduler was stopped
	}
	s.pending, s.ready = next, next
	if !next.After(now) {
		// After a stall the timer of the scheduler tells the time when it should have fired. The scheduler believes
		// that, and sleeps until its clock would show the next tick, which has been due for long.
		s.ready = now.Add(next.Sub(t))
	}
	return next
}

// due returns the tick for which a job is started now, and whether it is the one to look for missed ones.
func (s *ticks) due(now time.Time) (tick time.Time, look bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tick = s.fired
	if !s.pending.IsZero() && !s.ready.After(now) {
		tick = s.pending // the scheduler has not asked for the next one yet
	}
	return tick, !s.start.IsZero() && tick.Equal(s.start)
}
