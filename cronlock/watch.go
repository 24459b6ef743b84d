package cronlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// watch waits for the end of a run on another replica, to take the tick over if that is not heard of any more. It has a
// goroutine of its own, for which [cron.Cron.Stop] does not wait. It ends with the start deadline, the context of the
// jobs or the client.
func (j *job) watch(t tick) {
	patience, cancel := j.patience(t)
	defer cancel()
	attempt, reason, err := j.claim(patience, t, t.deadline)
	if attempt == nil {
		j.compare(t.time, err)
		j.skipAside(t, reason, err)
		return
	}
	ctx, cancel := until(patience, attempt.Context())
	defer cancel()
	if err := j.launch(ctx, func() { j.start(attempt, t) }); err != nil {
		// Another replica is to take it over, at once and with the same number of attempts left.
		_ = attempt.Withdraw(context.WithoutCancel(ctx))
		reason := Late
		if errors.Is(err, errStopped) || errors.Is(err, errRemoved) || j.config.context.Err() != nil {
			reason = Stopped
		}
		j.skipAside(t, reason, err)
	}
}

// adopt watches ticks from before this replica began that were claimed, not finished, and may still start: all replicas
// that watched them may have ended together with the runner.
func (j *job) adopt(began time.Time) {
	latest := latestTick(j.schedule, began)
	if latest.IsZero() {
		return
	}
	deadline := j.deadline(latest)
	ctx, cancel := context.WithTimeout(j.config.context, deadline)
	defer cancel()
	ticks, _ := ticksBetween(j.schedule, began.Add(-deadline), began, mostRemembered)
	for _, tick := range ticks[max(len(ticks)-mostClaimed, 0):] {
		if j.unfinished(ctx, tick) {
			go j.watch(newTick(tick, j.deadline(tick)))
		}
	}
}

// unfinished reports whether a tick was begun and not finished, by the last replica that has claimed it. It asks until
// there is an answer.
func (j *job) unfinished(ctx context.Context, tick time.Time) bool {
	for interval := firstPause; ; interval = min(2*interval, longestPause) {
		record, err := j.locks.Once(tickKey(j.name, tick)).Peek(ctx)
		if err == nil {
			released := record.State == core.StateNone && record.Attempt > 0
			return released || record.State == core.StateRunning || record.State == core.StateAbandoned
		}
		if errors.Is(err, core.ErrClosed) || !pause(ctx, interval) {
			return false
		}
	}
}

// skipAside is skip on a goroutine that the scheduler has not started: no wrapper of the cron recovers a panic of the hook
// there.
func (j *job) skipAside(t tick, reason string, err error) {
	defer j.recoverHook()
	j.skip(t, reason, err)
}
