package cronlock

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// job is what the scheduler starts.
type job struct {
	name   string
	locks  *core.Client
	fn     func(context.Context) error
	ticks  *ticks
	config config

	catching atomic.Bool  // it looks for missed ticks
	warned   atomic.Int64 // when it last complained about the clock, in ns since 1970
}

// Run is called by the scheduler, on a goroutine of its own, at a tick.
func (j *job) Run() {
	tick, look := j.ticks.due(time.Now())
	switch {
	case tick.IsZero(): // not started by the scheduler
	case look:
		j.catchUp(tick.Location())
	default:
		if reason := j.run(tick, j.deadline(tick)); reason == Late || reason == Unavailable {
			j.catchUp(tick.Location())
		}
	}
}

// deadline is how late a tick may start.
func (j *job) deadline(tick time.Time) time.Duration {
	if j.config.deadline > 0 {
		return j.config.deadline
	}
	least := leastDeadline
	if j.config.attempts > 1 {
		least = leastFailover
	}
	return max(min(period(j.ticks.schedule, tick)/2, mostDeadline), least)
}

const (
	leastDeadline = 10 * time.Second
	mostDeadline  = 5 * time.Minute
	// leastFailover is enough to notice that a runner has died soon after it began, with the default TTL.
	leastFailover = time.Minute
)

// leastPatience is how long Redis is asked for a tick that is too late by the clock of this replica: the clock may be
// wrong, and that of Redis decides.
const leastPatience = 5 * time.Second

// run runs a tick if this replica is to do it, and returns why not.
func (j *job) run(tick time.Time, deadline time.Duration) Reason {
	patience, cancel := context.WithTimeout(j.config.context,
		min(max(deadline-time.Since(tick), leastPatience), deadline))
	defer cancel()
	attempt, reason, err := j.claim(patience, tick, deadline)
	switch {
	case attempt != nil:
		left := tick.Add(deadline).Sub(attempt.Began()) // by the clock of Redis
		patience, cancel := context.WithTimeout(j.config.context, left)
		defer cancel()
		_ = j.execute(j.config.context, patience, attempt, tick, j.config.attempts)
	case reason == Unavailable && j.config.failOpen:
		ctx, cancel := j.config.bound(j.config.context)
		defer cancel()
		_ = j.call(ctx, Run{
			Job: j.name, Tick: tick, Replica: j.config.replica, Deadline: tick.Add(deadline),
		}, func(Run) {})
		return ""
	default:
		j.skip(tick, reason, err)
	}
	return reason
}

// now runs the job out of turn. Its record is no tick's, so nobody else comes for it.
func (j *job) now(ctx context.Context) error {
	if j.config.context.Err() != nil {
		return fmt.Errorf("holdfast: cronlock: job %q: stopped: %w", j.name, context.Cause(j.config.context))
	}
	ctx, cancel := until(ctx, j.config.context)
	defer cancel()
	now := time.Now()
	retention := core.WithRetention(max(j.remembered(now), time.Hour))
	attempt, err := j.locks.Once(nowKey(j.name, rand.Text()), j.options(retention)...).Begin(ctx)
	if err != nil {
		return err
	}
	return j.execute(ctx, ctx, attempt, now, 1)
}

// until returns a context with the values of ctx that ends with it, or with one of the others.
func until(ctx context.Context, others ...context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stops := make([]func() bool, len(others))
	for i, other := range others {
		stops[i] = context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}
