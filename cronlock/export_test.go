package cronlock

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"
)

// Fire starts a job for a tick as the scheduler does, through the wrappers, without waiting for that.
func Fire(c *cron.Cron, name string, tick time.Time) {
	j, ok := find(c, name)
	if !ok {
		panic("no job " + name)
	}
	id := c.Schedule(never{}, cron.FuncJob(func() { j.runTick(tick) }))
	entry := c.Entry(id)
	c.Remove(id)
	entry.WrappedJob.Run()
}

type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

// Begin starts the scheduler and waits until it has started what its jobs do then.
func Begin(c *cron.Cron) {
	c.Start()
	for len(Starters(c)) > 0 {
		time.Sleep(time.Millisecond)
	}
}

// Starters returns the entries of c that are not jobs.
func Starters(c *cron.Cron) (ids []cron.EntryID) {
	for _, entry := range c.Entries() {
		if _, ok := entry.Job.(*helper); ok {
			ids = append(ids, entry.ID)
		}
	}
	return ids
}

// Register records the job at once.
func Register(ctx context.Context, c *cron.Cron, name string) error {
	j, ok := find(c, name)
	if !ok {
		panic("no job " + name)
	}
	return j.register(ctx)
}

// Claim comes for a tick without registering the job.
func Claim(c *cron.Cron, name string, tick time.Time) {
	j, _ := find(c, name)
	j.run(tick, j.deadline(tick))
}
