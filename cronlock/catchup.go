package cronlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// catchUp runs the latest tick that all replicas have missed, if there is one. It asks Redis until there is an answer.
// The zone is that of the scheduler.
func (j *job) catchUp(zone *time.Location) {
	if j.config.catchUp <= 0 || !j.catching.CompareAndSwap(false, true) {
		return
	}
	defer j.catching.Store(false)
	ctx, cancel := context.WithTimeout(j.config.context, j.config.catchUp)
	defer cancel()
	last, err := j.last(ctx)
	if err != nil {
		j.config.logger.Warn("holdfast: cronlock: cannot catch up", "job", j.name, "error", err)
		return
	}
	if last.IsZero() {
		return // it has never run, or not for so long that nobody knows
	}
	now := time.Now().In(zone)
	if oldest := now.Add(-j.config.catchUp); last.Before(oldest) {
		last = oldest
	}
	tick, n := missed(j.ticks.schedule, last.In(zone), now)
	if n == 0 {
		return
	}
	j.config.logger.Info("holdfast: cronlock: catching up", "job", j.name, "missed", n, "tick", tick)
	j.run(tick, j.config.catchUp)
}

// last returns the latest tick that any replica has claimed, zero if there is none. What was run out of turn is no
// tick.
func (j *job) last(ctx context.Context) (time.Time, error) {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		records, err := j.locks.Records(ctx, groupOf(j.name))
		if err == nil {
			return latest(j.name, records), nil
		}
		if errors.Is(err, core.ErrClosed) || !pause(ctx, wait) {
			return time.Time{}, err
		}
	}
}

func latest(name string, records []core.Record) (last time.Time) {
	for _, r := range records {
		if tick, ok := tickOf(name, r.Key); ok && tick.After(last) {
			last = tick
		}
	}
	return last
}
