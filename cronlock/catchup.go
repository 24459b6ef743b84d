package cronlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// catchUp runs the latest tick that all replicas have missed, if there is one.
func (j *job) catchUp() {
	if tick, ok := j.missedTick(); ok {
		j.run(newTick(tick, j.config.catchUp), func() {})
	}
}

// missedTick looks for the latest tick that all replicas have missed. It asks Redis until there is an answer.
func (j *job) missedTick() (tick time.Time, ok bool) {
	if j.config.catchUp <= 0 || !j.catching.CompareAndSwap(false, true) {
		return tick, false
	}
	defer j.catching.Store(false)
	ctx, cancel := context.WithTimeout(j.config.context, j.config.catchUp)
	defer cancel()
	last, err := j.last(ctx)
	if err != nil {
		j.logger.Warn("holdfast: cronlock: cannot catch up", "job", j.shown(), "error", err)
		return tick, false
	}
	if last.IsZero() {
		return tick, false // it has never run, or not for so long that nobody knows
	}
	zone := j.cron.Location()
	now := time.Now().In(zone)
	if oldest := now.Add(-j.config.catchUp); last.Before(oldest) {
		last = oldest
	}
	tick, n := missed(j.schedule, last.In(zone), now)
	if n == 0 {
		return tick, false
	}
	j.logger.Info("holdfast: cronlock: catching up", "job", j.shown(), "missed", n, "tick", tick)
	return tick, true
}

// last returns the latest tick that any replica has claimed, or that a pause has kept from running, zero if there is
// none. What was run out of turn is no tick.
func (j *job) last(ctx context.Context) (time.Time, error) {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		last, err := j.lastNow(ctx)
		if err == nil {
			return last, nil
		}
		if errors.Is(err, core.ErrClosed) || !idleFor(ctx, wait) {
			return time.Time{}, err
		}
	}
}

func (j *job) lastNow(ctx context.Context) (time.Time, error) {
	records, err := j.locks.Records(ctx, groupOf(j.name))
	if err != nil {
		return time.Time{}, err
	}
	last := latest(j.name, records)
	if last.IsZero() {
		return last, nil
	}
	p, err := readPauses(ctx, j.locks, j.name)
	return latestOf(last, p.last.until), err
}

func latest(name string, records []core.Record) (last time.Time) {
	for _, r := range records {
		if tick, ok := tickOf(name, r.Key); ok && tick.After(last) {
			last = tick
		}
	}
	return last
}
