package cronlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
)

// untilAnswered asks Redis until there is an answer. That somebody is in the way is none as long as it may be a request of this
// replica, see doubt. What Redis has said of another run, an outage does not make unsaid.
func untilAnswered(ctx context.Context, ask func() error) error {
	const firstPause, longestPause = 50 * time.Millisecond, time.Second
	var doubt doubt
	var before, busy error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := ask()
		if before != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = before // what Redis has said, in time
		}
		before = err
		switch taken := guard.Busy(err) || errors.Is(err, core.ErrInProgress); {
		case err == nil, !taken && isAnswer(err), taken && !doubt.excuses():
			return err
		case taken:
			busy = err
		}
		doubt.any = doubt.any || errors.Is(err, core.ErrUnavailable)
		if !idleFor(ctx, pause) {
			return cmp.Or(busy, err)
		}
	}
}

// isAnswer reports whether it makes no sense to ask again. A server that is full, or rights that are being changed, are asked
// again like one that does not answer. A mistake in the program, time does not cure.
func isAnswer(err error) bool {
	for _, answer := range []error{
		core.ErrCompleted, core.ErrOutcomeUnknown, core.ErrOutsideWindow, core.ErrMisconfigured, core.ErrClosed,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	_, known := err.(decided)
	return known || guard.Mistaken(err)
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
