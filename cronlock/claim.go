package cronlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
)

// request asks Redis for a tick once, and waits for the end of a run on another replica for so long.
type request = func(ctx context.Context, wait time.Duration) error

// turn asks for the tick until there is an answer. It watches a run on another replica if this one may take the tick over, in case
// the lease expires or is given up.
func (e *execution) turn(_ context.Context, ask request) error {
	if e.outlivesLease() {
		return decided{Overlapping, errHere}
	}
	if err := e.leads(); err != nil {
		return e.because(err)
	}
	err := e.claim(ask, 0)
	if errors.Is(err, core.ErrInProgress) && e.attempts > 1 {
		e.watched = true
		err = e.claim(ask, e.tick.deadline)
	}
	if err == nil {
		return nil
	}
	switch not := e.because(err); {
	case not.reason != Unavailable, e.watched, !e.config.FailOpen:
		return not
	case guard.IsOutage(err):
		return err
	}
	return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
}

// claim asks for the tick until there is an answer.
func (e *execution) claim(ask request, wait time.Duration) error {
	return untilAnswered(e.patience, func() error {
		if err := e.unpaused(); err != nil {
			return err
		}
		return ask(e.patience, wait)
	}, e.answer)
}

// unpaused asks once whether the job is paused, and returns an error if it is.
func (e *execution) unpaused() error {
	paused, err := e.paused(e.patience, e.tick.time)
	if paused {
		return decided{reason: Paused}
	}
	return err
}

// answer judges an error about the tick.
func (e *execution) answer(err error) answer {
	_, known := err.(decided)
	switch reason := e.because(err).reason; {
	case errors.Is(err, core.ErrInProgress):
		return taken
	case known, reason != Unavailable && reason != Paused && reason != Refused, permanent(err):
		return final
	}
	return none
}

// gate keeps a tick from running that others may run, or nobody: the job was paused since this replica began to wait for it, or
// was removed from its cron. An operator who pauses a job and then ends its runner does not want another replica to begin again.
func (e *execution) gate(attempt int) error {
	if !e.watched && attempt == 1 {
		return nil
	}
	err := untilAnswered(e.patience, e.unpaused, e.answer)
	switch {
	case err != nil:
		return e.because(err)
	case e.watched && !e.isListed():
		return decided{Stopped, errRemoved}
	}
	return nil
}

// answer is what an error tells of a question to Redis.
type answer int

const (
	none  answer = iota // ask again
	taken               // somebody is in the way
	final
)

// untilAnswered asks Redis until there is an answer. That somebody is in the way is none as long as it may be a request of this
// replica, see doubt. What Redis has said of another run, an outage does not make unsaid.
func untilAnswered(ctx context.Context, ask func() error, judge func(error) answer) error {
	const firstPause, longestPause = 50 * time.Millisecond, time.Second
	var doubt doubt
	var before, busy error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := ask()
		if before != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = before // what Redis has said, in time
		}
		before = err
		if err == nil {
			return nil
		}
		switch answer := judge(err); {
		case answer == final, answer == taken && !doubt.excuses():
			return err
		case answer == taken:
			busy = err
		}
		doubt.any = doubt.any || errors.Is(err, core.ErrUnavailable)
		if !idleFor(ctx, pause) {
			return cmp.Or(busy, err)
		}
	}
}

// unlessClosed asks again after any error but that of a closed client.
func unlessClosed(err error) answer {
	if errors.Is(err, core.ErrClosed) {
		return final
	}
	return none
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

// ask is what the guard is asked for a tick. Its record leaves nothing to the client that would change what is promised.
func (e *execution) ask() guard.Ask {
	t := e.tick
	return guard.Ask{
		Work: e.work(t.time), Name: tickKey(e.name, t.time), Note: e.identity.note(), Retention: e.retention(t.time),
		Once: []core.OnceOption{core.WithWindow(t.time.Add(-e.config.maxSkew), t.latest())}, Turn: e.turn,
	}
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
