package cronlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// claim asks for a tick until there is an answer. ctx bounds the asking, and wait the waiting for the end of a run on
// another replica.
func (j *job) claim(ctx context.Context, t tick, wait time.Duration) (
	*core.Attempt, string, error,
) {
	ranHere := outage.Question{Key: tickKey(j.name, t.time)}
	if err := j.memory.Unrecorded(ranHere); err != nil {
		return nil, Taken, err
	}
	once := j.once(t, wait)
	var doubt doubt
	var before, taken error // taken is what Redis has said of another run, which an outage does not make unsaid
	for interval := firstPause; ; interval = min(2*interval, longestPause) {
		paused, err := j.paused(ctx, t.time)
		if paused {
			return nil, Paused, nil
		}
		if err == nil {
			var attempt *core.Attempt
			if attempt, err = once.Begin(ctx); err == nil {
				if err := j.memory.Unrecorded(ranHere); err != nil {
					_ = seal.AttemptOf(attempt).Withdraw(context.WithoutCancel(ctx))
					return nil, Taken, err
				}
				return j.unlessPaused(ctx, t.time, attempt, wait > 0)
			}
		}
		if before != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = before // what Redis has said, in time
		}
		before = err
		reason, known := j.refused(ctx, err)
		if known && !(errors.Is(err, core.ErrInProgress) && doubt.excuses()) {
			return nil, reason, err
		}
		if known {
			taken = err
		}
		doubt.any = doubt.any || errors.Is(err, core.ErrUnavailable)
		if !idleFor(ctx, interval) {
			err = cmp.Or(taken, err)
			reason, _ := j.refused(ctx, err)
			return nil, reason, err
		}
	}
}

// unlessPaused gives back a tick if the job was paused since this replica began to wait for it: an operator who pauses a job and
// then ends its runner does not want another replica to begin again. It asks until there is an answer.
func (j *job) unlessPaused(
	ctx context.Context, tick time.Time, attempt *core.Attempt, waited bool,
) (*core.Attempt, string, error) {
	if !waited && attempt.Number() == 1 {
		return attempt, "", nil
	}
	for interval := firstPause; ; interval = min(2*interval, longestPause) {
		paused, err := j.paused(ctx, tick)
		if err == nil && !paused {
			return attempt, "", nil
		}
		reason := Paused
		if err != nil {
			known := false
			if reason, known = j.refused(ctx, err); !known && idleFor(ctx, interval) {
				continue
			}
		}
		_ = seal.AttemptOf(attempt).Withdraw(context.WithoutCancel(ctx))
		return nil, reason, err
	}
}

// The pauses between two questions that Redis did not answer.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// refused judges why a tick cannot be claimed; false if that may be asked again.
func (j *job) refused(ctx context.Context, err error) (string, bool) {
	var outside *core.OutsideWindowError
	switch {
	case j.config.context.Err() != nil, errors.Is(err, core.ErrClosed):
		return Stopped, true
	case errors.As(err, &outside) && outside.Early:
		return Early, true
	case errors.As(err, &outside):
		return Late, true
	case errors.Is(err, core.ErrInProgress), errors.Is(err, core.ErrCompleted), errors.Is(err, core.ErrOutcomeUnknown):
		return Taken, true
	case outage.Is(err), ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, core.ErrUnavailable):
		return j.unavailable(), false
	}
	return Refused, permanent(err)
}

// permanent reports whether an error is a mistake in the program, which time does not cure. A server that is full, or
// rights that are being changed, are asked again like one that does not answer.
func permanent(err error) bool {
	for _, mistake := range []error{
		core.ErrInvalidOption, core.ErrInvalidName, core.ErrWrongType, core.ErrUpgrade, core.ErrMisconfigured, core.ErrClosed,
	} {
		if errors.Is(err, mistake) {
			return true
		}
	}
	return false
}

// retention is how long the record of a tick is kept: for longer than anyone may come for the tick, so that a forgotten one is
// always too late; and a failed-over master whose clock is behind has the same time once more.
func (j *job) retention(tick time.Time) time.Duration {
	window := max(j.longestSleep(tick)+j.deadline(tick), j.config.catchUp)
	retention := max(j.remembered(tick), 2*window+j.config.maxSkew)
	if j.config.catchUp > 0 {
		retention = max(retention, 3*period(j.schedule, tick)) // so that there is a last tick to catch up from
	}
	return whole(retention)
}

// once is the record of a tick.
func (j *job) once(t tick, wait time.Duration) *core.Once {
	options := j.options(
		core.WithRetention(j.retention(t.time)),
		core.WithWindow(t.time.Add(-j.config.maxSkew), t.time.Add(t.deadline)),
	)
	if j.config.attempts > 1 {
		// The others watch, to take over from a runner that is not heard of any more.
		options = append(options, core.WithFailurePolicy(core.RetryFailures), core.WithWait(wait))
	}
	return j.locks.Once(tickKey(j.name, t.time), options...)
}

// options are those of all records of runs. They leave nothing to the client's that would change what is promised.
func (j *job) options(more ...core.OnceOption) []core.OnceOption {
	options := []core.OnceOption{
		core.WithGroup(), core.WithNote(j.identity.note()), core.WithLabel(j.name),
		core.WithWait(0),
		core.WithFailurePolicy(core.HoldFailures),
	}
	once := j.config.Once
	if j.config.overlap != overlapAllow {
		once = guard.Without(once, "core.WithMaxHold") // the lock has it, which a tick may wait for
	}
	return slices.Concat(options, once, more)
}

// remembered is how long [JobHandle.History] tells of a tick.
func (j *job) remembered(tick time.Time) time.Duration {
	return rememberedFor(j.config.history, period(j.schedule, tick))
}

func rememberedFor(history int, each time.Duration) time.Duration {
	const most = 30 * 24 * time.Hour
	if each > most/time.Duration(max(history, 1)) {
		return most
	}
	return whole(time.Duration(history) * each)
}

// whole rounds up to milliseconds, in which Redis counts, and to the least that it takes.
func whole(d time.Duration) time.Duration {
	return max((d + time.Millisecond - 1).Truncate(time.Millisecond), 10*time.Millisecond)
}

// idleFor waits, and reports false if ctx ended.
func idleFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// doubt is about a request of this replica that was not answered. It may arrive in Redis yet, and is in the way until
// it is taken back, which core does in the background. All replicas take it for a run, so it is up to its sender to ask
// again: otherwise nobody would run the tick.
type doubt struct {
	any   bool
	since time.Time // when Redis first said that somebody is in the way
}

// doubtTime is enough to take a request back once Redis answers again.
const doubtTime = 10 * time.Second

// excuses reports whether the one in the way may be that request.
func (d *doubt) excuses() bool {
	if !d.any {
		return false
	}
	if d.since.IsZero() {
		d.since = time.Now()
	}
	return time.Since(d.since) < doubtTime
}
