package cronlock

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// request asks Redis for a tick once, and waits for the end of a run on another replica for so long.
type request = func(ctx context.Context, wait time.Duration) error

// turn asks for the tick until there is an answer. If this replica may take over, it watches a run on another one, whose lease may
// expire or be given up.
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
	})
}

// unpaused asks once whether the job is paused, or was at the tick, and returns an error if so. It compares the clocks on the way.
func (e *execution) unpaused() error {
	asked := time.Now()
	p, err := readPauses(e.patience, e.locks, e.name)
	if err != nil {
		return err
	}
	paused := p.present != pause{}
	if e.lastPaused.Store(paused); paused || !e.tick.time.After(p.last.until) {
		return decided{reason: Paused}
	}
	e.skewed(e.tick.time, asked, time.Now(), p.now)
	return nil
}

// gate keeps a tick from running that others may run, or nobody: the job was paused since this replica began to wait for it, or
// was removed from its cron. An operator who pauses a job and then ends its runner does not want another replica to begin again.
func (e *execution) gate(attempt int) error {
	if !e.watched && attempt == 1 {
		return nil
	}
	err := untilAnswered(e.patience, e.unpaused)
	switch {
	case err != nil:
		return e.because(err)
	case e.watched:
		if _, listed := e.entry(); !listed {
			return decided{Stopped, errRemoved}
		}
	}
	return nil
}

// doubtTime is enough to withdraw a request once Redis answers again.
const doubtTime = 10 * time.Second

// untilAnswered asks Redis until there is an answer. The last conflict that Redis reported is kept across later connection errors.
//
// A request of this replica that was not answered may still arrive in Redis, and conflicts with others until core has withdrawn it in
// the background. All replicas take it for a run, so its sender has to ask again: otherwise nobody would run the tick. Therefore a
// conflict is no answer while such a request may be its cause.
func untilAnswered(ctx context.Context, ask func() error) error {
	const firstPause, longestPause = 50 * time.Millisecond, time.Second
	var before, busy error
	doubtful, since := false, time.Time{} // since the first conflict
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := ask()
		if before != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = before // what Redis replied, in time
		}
		before = err
		taken := guard.Busy(err) || errors.Is(err, core.ErrInProgress)
		if taken && since.IsZero() {
			since = time.Now()
		}
		switch {
		case err == nil, !taken && isAnswer(err), taken && (!doubtful || time.Since(since) >= doubtTime):
			return err
		case taken:
			busy = err
		}
		doubtful = doubtful || errors.Is(err, core.ErrUnavailable)
		if !guard.Pause(ctx, pause) {
			return cmp.Or(busy, err)
		}
	}
}

// isAnswer reports whether it makes no sense to ask again, as after a mistake in the program, which waiting does not
// fix. A server that is full, or rights that are being changed, are asked again like a server that does not answer.
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

// pauses are what Redis knows of the pauses of a job.
type pauses struct {
	now     time.Time // of Redis
	by      string    // who has paused the job, as another program may have written it
	present pause     // zero if the job is not paused
	last    pause     // the last one that has ended; zero if that is not remembered
}

// pause is a pause from one time until another, by the clock of Redis. A pause that has not ended lasts until now.
type pause struct{ from, until time.Time }

// covers reports whether a tick is or was skipped by the pause.
func (p pause) covers(tick time.Time) bool {
	return !p.from.IsZero() && !tick.Before(p.from) && !tick.After(p.until)
}

//go:embed lua/paused.lua
var pausedScript string

// evalPause runs a script on the pause of a job, once.
func evalPause(ctx context.Context, locks *core.Client, name, script string, args ...any) (any, error) {
	return seal.FactsOf(locks).Client.Eval(ctx, script, "paused", groupOf(name), args...)
}

// latestTime is the last time that a script can have written, in us: numbers of Lua are exact up to here.
const latestTime = 1 << 53

// readPauses asks Redis once.
func readPauses(ctx context.Context, locks *core.Client, name string) (p pauses, err error) {
	reply, err := evalPause(ctx, locks, name, pausedScript)
	if err != nil {
		return p, err
	}
	fields, _ := reply.([]any)
	if len(fields) != 5 {
		return p, core.ErrWrongType
	}
	texts := make([]string, len(fields))
	for i, field := range fields {
		text, ok := field.(string)
		if !ok {
			return p, core.ErrWrongType
		}
		texts[i] = text
	}
	at := func(i int) (t time.Time) {
		if texts[i] == "" {
			return t
		}
		us, bad := strconv.ParseInt(texts[i], 10, 64)
		if bad != nil || us < 0 || us > latestTime {
			err = core.ErrWrongType // another program has written it
			return t
		}
		return time.UnixMicro(us)
	}
	p = pauses{now: at(0), by: texts[1], last: pause{at(3), at(4)}}
	if from := at(2); !from.IsZero() {
		p.present = pause{from, p.now}
	}
	return p, err
}

// unavailable is the reason why a tick does not run in an outage. A job that fails open is paused if that was the last
// answer of Redis: the operator who has paused it may have done so because of the outage. A pause lasts longer than any
// process, so the answer does not grow too old.
func (j *job) unavailable() string {
	if j.config.FailOpen && j.lastPaused.Load() {
		return Paused
	}
	return Unavailable
}

// skewed compares the clocks. Redis read its clock at some time between asked and answered on the clock of this replica.
func (j *job) skewed(at, asked, answered, server time.Time) {
	offset := clockOffset(asked, answered, server)
	if offset.Abs() <= j.config.maxSkew/2 {
		return
	}
	const silence = 10 * time.Minute // enough to find it in a log; the hook is called each time
	if elapsed(&j.skewLogged, answered, silence) {
		j.logger.Warn("holdfast: cronlock: the clock of this replica differs from Redis's; if all replicas log this, look at "+
			"Redis", "job", j.shown(), "offset", offset, "max", j.config.maxSkew)
	}
	side := "ahead of"
	if offset < 0 {
		side = "behind"
	}
	j.hooks.Incident(j.config.context, core.Incident{Work: j.work(at), Kind: IncidentSkew, Err: fmt.Errorf(
		"holdfast: cronlock: the clock of this replica is %v %s the clock of Redis", offset.Abs(), side)})
}

// clockOffset is how far the clock of this replica is ahead for certain: a slow answer is no skew.
func clockOffset(asked, answered, server time.Time) time.Duration {
	least, most := asked.Sub(server), answered.Sub(server)
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}
