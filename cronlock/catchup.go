package cronlock

import (
	"context"
	"time"
)

// catchUp runs, in the background, the latest tick that all replicas have missed. The scheduler calls it when it begins.
func (j *job) catchUp() {
	if j.config.catchUp <= 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(j.config.context, j.config.catchUp)
		defer cancel()
		runs, err := History(ctx, j.locks, j.name)
		if err != nil {
			j.config.logger.Warn("holdfast: cronlock: cannot catch up", "job", j.name, "error", err)
			return
		}
		if len(runs) == 0 {
			return // it has never run, or not for so long that nobody knows
		}
		now := time.Now()
		tick, n := missed(j.ticks.schedule, runs[0].Tick, now)
		if n == 0 || now.Sub(tick) > j.config.catchUp {
			return
		}
		j.config.logger.Info("holdfast: cronlock: catching up", "job", j.name, "missed", n, "tick", tick)
		j.run(tick, j.config.catchUp)
	}()
}
