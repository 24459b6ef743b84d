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
	var never probe
	id := c.Schedule(&never, cron.FuncJob(func() { j.come(tick) }))
	entry := c.Entry(id)
	c.Remove(id)
	entry.WrappedJob.Run()
}

// Begin starts the scheduler and does what the job does then, up to the launch of what is to be run.
func Begin(c *cron.Cron, name string) {
	j, ok := find(c, name)
	if !ok {
		panic("no job " + name)
	}
	for _, entry := range Starters(c) {
		c.Remove(entry)
	}
	c.Start()
	now := time.Now().In(c.Location())
	j.progress.begin(now)
	j.begin(now)
}

// Starters returns the entries of c that are not jobs.
func Starters(c *cron.Cron) (ids []cron.EntryID) {
	for _, entry := range c.Entries() {
		if _, ok := entry.Job.(*starter); ok {
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

// Compare comes for a tick that another replica has claimed, without registering the job.
func Compare(c *cron.Cron, name string, tick time.Time) {
	j, _ := find(c, name)
	j.run(newTick(tick, j.deadline(tick)))
}
