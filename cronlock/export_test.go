package cronlock

import (
	"time"

	"github.com/robfig/cron/v3"
)

// Fire starts a job as the scheduler does at a tick, through the wrappers, without waiting for that.
func Fire(c *cron.Cron, name string, tick time.Time) {
	for _, entry := range c.Entries() {
		if j, ok := entry.Job.(*job); ok && j.name == name {
			j.ticks.set(tick)
			entry.WrappedJob.Run()
		}
	}
}

func (s *ticks) set(tick time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending, s.fired = time.Time{}, tick
}
