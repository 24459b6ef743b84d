package httpguard

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// run is a request at a guard, and in the context of its handler.
type run struct {
	*guard
	once  *Once // nil for Exclusive
	ask   guards.Ask
	owner string // whose places to wait the request takes
	early bool   // it has come in early data
	outer *run   // in which it is; nil for the outermost

	request context.Context // that of the request, also if the handler's is detached from it
	ctx     context.Context // of the handler

	refusal atomic.Int32 // the status with which a guard inside refused the request, or notRefused or unsent
	inside  atomic.Int32 // what became of a run inside that did not answer, a Disposition: see [run.instead]

	outcome  Handled  // of Once, once the handler has returned
	cause    error    // why the context of the handler has ended
	answered Answered // of Exclusive
	replay   *Response
	conflict *Conflict
}

type runKey struct{}

// runFrom returns the innermost run of which ctx is the context, nil if there is none.
func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// newRun returns the run of a request that is going to be asked about.
func (g *guard) newRun(ctx context.Context, req Request, name, hash string) *run {
	r := &run{guard: g, owner: req.answering(), outer: runFrom(ctx), request: ctx}
	r.refusal.Store(notRefused)
	r.ask = guards.Ask{Work: core.Work{Label: req.label(), KeyHash: hash}, Name: name, By: req.AnswerBy}
	if g.config.Wait > 0 {
		r.ask.Turn = r.turn
	}
	return r
}

// turn asks about the request for as long as it may wait, if one more may wait.
func (r *run) turn(ctx context.Context, ask func(ctx context.Context, wait time.Duration) error) error {
	if r.early {
		if err := r.once.refuseEarly(ctx, r.ask); err != nil {
			return err
		}
	}
	patience := r.engine.Patience(r.ask, r.config.Wait)
	switch {
	case patience.Wait == 0:
	case r.gate.enter(r.ask.KeyHash, r.owner):
		defer r.gate.leave(r.ask.KeyHash, r.owner)
	default:
		patience.Wait = 0
	}
	return patience.Begin(ctx, ask)
}

// begin returns the context for the handler.
func (r *run) begin(ctx context.Context) context.Context {
	letThroughInside(r.request)
	r.ctx = context.WithValue(ctx, runKey{}, r)
	return r.ctx
}

// mostReason bounds what an error shows of the reason that a handler gave to Hold, in bytes.
const mostReason = 200

// judge judges how the handler of a Once ended.
func (r *run) judge(o *guards.Outcome) {
	out := r.outcome.normalized(r)
	r.outcome, r.cause = out, context.Cause(r.ctx)
	o.Reason = out.reason()
	if out.answered() {
		o.Value = func() ([]byte, error) { return r.once.encode(out.Response, r.ask.KeyHash) }
	}
	said, reason := seal.Undecided, ""
	if run := seal.RunFrom(r.ctx); run != nil { // a hook may have returned a context of its own
		said, reason = run.Said()
	}
	refused := r.refused(out.Response.Status, out.Failed, out.Unanswered) && out.Returned
	judged := func(d Disposition) {
		o.Verdict = guards.Verdict(d) // the values are the same
		switch {
		case d == Completed, !out.Returned, refused:
			o.Err = nil
		case said == seal.Held && reason != "":
			o.Err = errors.New("holdfast: the handler called Hold: " + foreign.Line(reason, mostReason))
		default:
			o.Err = failureOf(out.Response.Status, out.answered(), out.Failed)
		}
	}
	judged(r.config.disposition(out)) // which stays if the application's judge panics
	switch {
	case said != seal.Undecided:
		judged(Disposition(said)) // the values are the same
	case refused:
		judged(Released)
	case r.config.Completion != nil:
		if d := r.config.Completion(out); d > Auto && d <= Held {
			judged(d)
		}
	}
}

// normalized fills in what an adapter cannot know: whether the handler returned because its context was over, or that of a
// run inside. If it wrote nothing, the empty answer that the server would send is not the handler's. If it was streaming
// its answer, the rest of that may be missing: a handler that stops at its context never meets a failing write. A handler
// with a detached context may stop as well when the client leaves, because CloseNotify of net/http tells it.
func (o Handled) normalized(r *run) Handled {
	over, left := r.ctx.Err() != nil, r.request.Err() != nil
	switch {
	case o.Response == nil, !o.Returned, o.Unanswered && (over || r.inside.Load() != 0):
		o.Response = &Response{}
	case o.Response.streamed && (over || left):
		part := *o.Response
		part.Body, part.Omitted = nil, true
		o.Response = &part
	}
	return o
}

// reason is what an operator reads in the record of an unknown outcome.
func (o Handled) reason() string {
	switch {
	case !o.Returned:
		return "the handler did not return"
	case o.Failed:
		return "the handler reported errors"
	case !o.answered():
		return "the handler did not answer"
	}
	return "the handler answered with a failure"
}

// tell has the hooks told of a refusal, and the runs around.
func (c *Conflict) tell(ctx context.Context, not *core.NotRun) {
	c.KeyHash, c.Waited = not.KeyHash, not.Waited
	not.Reason, not.RetryAfter, not.Err = c.Code, c.RetryAfter, c
	refusedInside(ctx)
}

// Degraded returns true if ctx is that of a request which runs unguarded, because Redis could not be asked and the
// guard fails open. There is no fencing token then.
func Degraded(ctx context.Context) bool { return guards.Degraded(ctx) }
