package cronlock

import (
	"context"
	"crypto/rand"
	"errors"
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
}

// Run is called by the scheduler, on a goroutine of its own, at a tick.
func (j *job) Run() {
	now := time.Now()
	tick := j.ticks.due(now)
	if tick.IsZero() {
		return // not started by the scheduler
	}
	j.run(tick, j.deadline(tick))
}

// deadline is how late a tick may start.
func (j *job) deadline(tick time.Time) time.Duration {
	if j.config.deadline > 0 {
		return j.config.deadline
	}
	return max(min(period(j.ticks.schedule, tick)/2, 5*time.Minute), 10*time.Second)
}

// run runs a tick if this replica is to do it.
func (j *job) run(tick time.Time, deadline time.Duration) {
	patience, cancel := context.WithTimeout(j.config.context, deadline)
	defer cancel()
	attempt, reason, err := j.claim(patience, tick, deadline)
	switch {
	case attempt != nil:
		j.execute(attempt, tick, patience)
	case reason == Unavailable && j.config.failOpen:
		j.call(j.config.context, Run{Job: j.name, Tick: tick, Replica: j.config.replica}, func(Run) {})
	default:
		j.skip(tick, reason, err)
	}
}

// claim asks for a tick until there is an answer.
func (j *job) claim(ctx context.Context, tick time.Time, deadline time.Duration) (*core.Attempt, Reason, error) {
	once := j.once(tickKey(j.name, tick), tick, deadline)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		paused, err := IsPaused(ctx, j.locks, j.name)
		if paused {
			return nil, Paused, nil
		}
		if err == nil {
			asked := time.Now()
			var attempt *core.Attempt
			if attempt, err = once.Begin(ctx); err == nil {
				j.skewed(asked, attempt.Began())
				return attempt, "", nil
			}
			if reason, known := j.refused(asked, err); known {
				return nil, reason, err
			}
		}
		if !pause(ctx, wait) {
			if j.config.context.Err() != nil {
				return nil, Stopped, err
			}
			return nil, Unavailable, err
		}
	}
}

// refused judges why a tick cannot be claimed; false if that may be asked again.
func (j *job) refused(asked time.Time, err error) (Reason, bool) {
	var outside *core.OutsideWindowError
	switch {
	case errors.As(err, &outside):
		j.skewed(asked, outside.ServerTime)
		if outside.Early {
			return Early, true
		}
		return Late, true
	case errors.Is(err, core.ErrInProgress), errors.Is(err, core.ErrCompleted), errors.Is(err, core.ErrOutcomeUnknown):
		return Taken, true
	case errors.Is(err, core.ErrClosed):
		return Stopped, true
	case errors.Is(err, core.ErrUnavailable):
		return "", false
	}
	return Unavailable, !errors.Is(err, context.DeadlineExceeded)
}

// once is the record of a tick. It is kept for longer than somebody may come for the tick, so that a forgotten one is
// always too late; and a failed-over master whose clock is behind has the same time once more.
func (j *job) once(key string, tick time.Time, deadline time.Duration) *core.Once {
	remembered := min(time.Duration(j.config.history)*period(j.ticks.schedule, tick), 30*24*time.Hour)
	options := []core.OnceOption{
		core.WithGroup(), core.WithNote(j.config.replica), core.WithWait(0),
		core.WithRetention(max(remembered, 2*deadline+j.config.maxSkew, j.config.catchUp).Truncate(time.Millisecond)),
		core.WithWindow(tick.Add(-j.config.maxSkew), tick.Add(deadline)),
		core.WithFailurePolicy(core.HoldFailures),
	}
	if j.config.attempts > 1 {
		// The others wait, to take over from a runner that is not heard of any more.
		options = append(options, core.WithFailurePolicy(core.RetryFailures), core.WithWait(deadline))
	}
	for _, o := range j.config.lock {
		options = append(options, o)
	}
	return j.locks.Once(key, options...)
}

// now runs the job out of turn. Its record is no tick's.
func (j *job) now(ctx context.Context) error {
	now := time.Now()
	key := nowKey(j.name, rand.Text())
	once := j.once(key, now, longestPeriod)
	attempt, err := once.Begin(ctx)
	if err != nil {
		return err
	}
	return j.execute(attempt, now, ctx)
}

// pause reports false if ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
