package httplock

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
)

// A guard that refuses a request tells the guards around it in the same process, whose runs are in the context: the
// handler behind it did not run, so there is nothing to record, whatever the status of the refusal. A later guard in the
// same runs that lets the request through takes that back.

const (
	notRefused = -1 // no guard inside has refused the request, or one has let it through since
	unsent     = -2 // one has refused it, and its answer is not known yet
)

// refusedInside tells all runs of ctx that a guard inside of them has refused the request.
func refusedInside(ctx context.Context) { tellRuns(ctx, unsent) }

// letThroughInside tells all runs of ctx that a guard inside of them has let the request through.
func letThroughInside(ctx context.Context) {
	unansweredInside(runFrom(ctx), Auto)
	tellRuns(ctx, notRefused)
}

func tellRuns(ctx context.Context, refusal int32) {
	for r := runFrom(ctx); r != nil; r = r.outer {
		r.refusal.Store(refusal)
	}
}

// refusalSent notifies the runs of ctx that a guard inside of them has refused a request, and with which status; 0
// means that it has answered nothing. It is called after the refusal is written. It does nothing outside of a run.
// Why: a handler between two guards may answer in its own way after the inner guard has refused, and after work of its
// own. That answer counts as any other.
func refusalSent(ctx context.Context, status int) { tellRuns(ctx, int32(status)) }

// refused reports whether an answer is the refusal of a guard inside this run: by its status, or as one that is left to
// something around, or was not given.
func (r *run) refused(status int, failed, unanswered bool) bool {
	switch sent := r.refusal.Load(); sent {
	case notRefused:
		return false
	case unsent:
		return true // by an adapter that does not tell
	case 0:
		return unanswered || failed
	default:
		return failed || status == int(sent)
	}
}

// A handler may return without an answer because its context was over, while its client still waits: a lease was lost, or
// a timeout around the guard has passed. The server would answer 200 then. So the outermost guard that keeps a record
// answers in its place, by what a retry is going to find. Without such a guard the innermost one answers.

// instead returns what to answer in place of a handler that has not answered because its context was over, nil for any
// other. It leaves that to the run around this one that keeps a record, if there is one.
func (r *run) instead(state core.State) *Conflict {
	if o := r.outcome; !o.Unanswered || o.answered() {
		return nil
	}
	d := Released
	switch state {
	case core.StateCompleted:
		d = Completed
	case core.StateUnknown:
		d = Held
	}
	if inside := Disposition(r.inside.Load()); d == Released && inside != Auto {
		d = inside // a retry gets past this guard
	}
	if r.outer.recorded() {
		unansweredInside(r.outer, d)
		return nil
	}
	code := CodeNotAnswered
	switch d {
	case Held:
		code = CodeOutcomeUnknown
	case Completed:
		code = CodeAlreadyCompleted
	}
	c := newConflict(code, r.cause)
	c.KeyHash, c.ran = r.ask.KeyHash, true
	return c
}

// recorded reports whether a run or one around it keeps a record.
func (r *run) recorded() bool {
	for ; r != nil; r = r.outer {
		if r.once != nil {
			return true
		}
	}
	return false
}

// unansweredInside tells a run and those around it what became of a run inside that has not answered.
func unansweredInside(r *run, d Disposition) {
	for ; r != nil; r = r.outer {
		r.inside.Store(int32(d))
	}
}

// HandlerFailed is called by [request.HandlerFailed].
func (r *run) HandlerFailed() { unansweredInside(r, Released) }

// unanswered returns what to answer in place of a silent handler of an Exclusive, nil if a guard around this one is going to answer.
func (r *run) unanswered() *Conflict {
	if r.outer.recorded() {
		unansweredInside(r.outer, Released)
		return nil
	}
	c := newConflict(CodeNotAnswered, context.Cause(r.came.Context()))
	c.KeyHash, c.ran = r.ask.KeyHash, true
	c.Retryable, c.RetryAfter = false, 0
	return c
}
