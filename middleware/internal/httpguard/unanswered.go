package httpguard

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
)

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
	c := r.config.conflict(code, r.cause)
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

// HandlerFailed notes that the handler of ctx has reported an error which nothing has answered: then the server's empty 200 is not
// its answer, and the failure policy decides. It does nothing outside of a run.
func HandlerFailed(ctx context.Context) { unansweredInside(runFrom(ctx), Released) }

// Unanswered returns what to answer in place of a handler that has written nothing because its context was over: 503
// not-answered. Call it after [Exclusive.Do] has returned nil, with the context of the request as it came to the guard. It
// returns nil if something around the guard is going to answer: a guard that keeps records.
//
// The outcome is recorded nowhere, so the same request would run again: the Conflict is not retryable.
func (e *Exclusive) Unanswered(ctx context.Context, key Key) *Conflict {
	if r := runFrom(ctx); r.recorded() {
		unansweredInside(r, Released)
		return nil
	}
	c := e.config.conflict(CodeNotAnswered, context.Cause(ctx))
	c.KeyHash, c.ran = key.HashWith(e.config.KeySecret), true
	c.Retryable, c.RetryAfter = false, 0
	return c
}

// ranDetails are the details of problems for a request that has run, where those of a refusal would say that it has not.
var ranDetails = map[string]string{
	CodeAlreadyCompleted: "The request took effect, but it was ended before it had an answer.",
	CodeOutcomeUnknown: "The request was ended before it had an answer, and may have taken effect. " +
		"Find out what became of it.",
}
