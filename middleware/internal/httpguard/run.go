package httpguard

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Run is a request that a [Once] lets run. The adapter must call [Run.Finish].
type Run struct {
	once     *Once
	attempt  *core.Attempt // nil if the guard fails open
	claim    claim
	hash     string
	began    time.Time
	request  context.Context // that of the request, also if the handler's is detached from it
	ctx      context.Context
	cancel   context.CancelFunc
	outer    *Run
	answerBy time.Time    // see [Request]
	word     seal.Word    // the handler's
	refusal  atomic.Int32 // the status with which a guard inside refused the request, or notRefused or unsent
	finished atomic.Bool
	inside   atomic.Int32 // what became of a run inside that did not answer, a Disposition: see [Run.instead]
	// holdsFailures is set if a guard inside with the same key holds failures.
	holdsFailures atomic.Bool
}

type runKey struct{}

// runFrom returns the innermost run of which ctx is the context, nil if there is none.
func runFrom(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}

// newRun makes the context of a handler. It calls end when the run has ended.
func (o *Once) newRun(ctx context.Context, c claim, attempt *core.Attempt, end func()) *Run {
	r := &Run{
		once: o, attempt: attempt, claim: c, hash: c.hash, began: time.Now(), request: ctx, outer: runFrom(ctx), answerBy: c.answerBy,
	}
	r.refusal.Store(notRefused)
	if o.config.Detached {
		ctx = context.WithoutCancel(ctx)
	}
	ctx = context.WithValue(ctx, runKey{}, r)
	if attempt == nil {
		r.ctx, r.cancel = context.WithCancel(ctx)
	} else {
		r.ctx, r.cancel = seal.AttemptOf(attempt).Bind(ctx)
	}
	r.ctx = seal.WithRun(r.ctx, inside{r})
	cancel := r.cancel
	r.cancel = func() { cancel(); end() }
	return r
}

// work describes the request to hooks.
func (r *Run) work() core.Work { return workOf(r.claim.label, r.hash) }

// start tells the hook of a run that begins. The context that the hook returns becomes that of the handler.
func (r *Run) start(waited time.Duration) {
	start := core.RunStart{Work: r.work(), Waited: waited}
	if r.attempt != nil {
		start.Token, start.Attempt = r.attempt.Token(), r.attempt.Number()
	}
	r.ctx = r.once.hooks.RunStart(r.ctx, start)
}

// goesOn reports whether the handler is still running under the key.
func (r *Run) goesOn() bool {
	return !r.finished.Load() && (r.attempt == nil || r.attempt.Context().Err() == nil)
}

// Context is the context for the handler. It ends when that of the request ends, or the lease is lost. It carries the
// fencing token, the attempt, and the facts for [core.KeyHash] and [Degraded].
func (r *Run) Context() context.Context { return r.ctx }

// Capture returns how many bytes of the answer to hold back until [Run.Finish] has returned, so that a client that has
// read its answer finds it recorded. It also returns true if the record or a judge needs the body.
func (r *Run) Capture() (bytes int, body bool) {
	return r.once.config.MaxValue, r.once.config.Replay || r.once.config.Completion != nil
}

// Finish records how the handler ended, within a few seconds at most, even if the client has left. A second call does
// nothing. Send the answer only after Finish.
//
// If the handler has written nothing because its context was over, Finish returns what to answer in its place: call
// [Capture.Abandon], and send that as a refusal. Otherwise Finish returns nil.
//
// If the application's judge, codec or hook panics, Finish ends the attempt all the same, and the panic continues.
// Otherwise the key would be renewed until the process ends. A judge that panicked has not judged.
func (r *Run) Finish(outcome Outcome) (instead *Conflict) {
	if !r.finished.CompareAndSwap(false, true) {
		return nil
	}
	defer r.cancel()
	outcome = r.normalized(outcome)
	d := r.once.config.disposition(outcome, r.policy())
	defer func() {
		r.end(d, outcome)
		instead = r.instead(d, outcome)
	}()
	switch word := r.said(); {
	case word != Auto:
		d = word
	case r.refused(outcome):
		d = Released
	case r.once.config.Completion != nil:
		if judged := r.once.config.Completion(outcome); judged > Auto && judged <= Held {
			d = judged
		}
	}
	return nil // or what the deferred function finds
}

// policy is the failure policy of the guard, or of a guard inside with the same key that holds failures.
func (r *Run) policy() core.FailurePolicy {
	if r.holdsFailures.Load() {
		return core.HoldFailures
	}
	return r.once.config.FailurePolicy
}

// holdFailures makes a run that allows retries keep its key after a failure. A guard inside asks for it, which has the same
// key and lets the request pass. The error says that Redis did not confirm that, so a crash would free the key.
func (r *Run) holdFailures(ctx context.Context) error {
	if r.policy() == core.HoldFailures {
		return nil
	}
	r.holdsFailures.Store(true)
	if r.attempt == nil || r.said() != Auto {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.once.config.AskTimeout)
	defer cancel()
	return r.attempt.Declare(ctx, core.StateUnknown)
}

// normalized fills in what an adapter cannot know: whether the handler returned because its context was over, or that of a
// run inside. If it wrote nothing, the empty answer that the server would send is not the handler's. If it was streaming
// its answer, the rest of that may be missing: a handler that stops at its context never meets a failing write. A handler
// with a detached context may stop as well when the client leaves, because CloseNotify of net/http tells it.
func (r *Run) normalized(o Outcome) Outcome {
	over := r.ctx.Err() != nil
	left := r.request.Err() != nil
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

// end ends the attempt, and then tells the hooks.
func (r *Run) end(d Disposition, outcome Outcome) {
	o, ctx := r.once, context.WithoutCancel(r.ctx)
	end := core.RunEnd{
		Work: r.work(), State: d.state(), Held: time.Since(r.began), Panicked: !outcome.Returned, Err: r.failure(d, outcome),
	}
	var unrecorded error
	if r.attempt != nil {
		lost := context.Cause(r.attempt.Context())
		end.Token, end.Attempt = r.attempt.Token(), r.attempt.Number()
		unrecorded = r.write(ctx, d, outcome)
		if lost != nil {
			o.incident(ctx, end.Work, core.IncidentLost, lost)
		}
		if unrecorded != nil {
			o.incident(ctx, end.Work, core.IncidentUnrecorded, unrecorded)
		}
	}
	if d == Held {
		o.log.held(ctx, r.hash)
	}
	switch {
	case !o.config.FailOpen:
	case r.attempt == nil || unrecorded != nil:
		r.remember(d, outcome)
	case d == Completed:
		o.memory.Recorded(r.hash, core.StateCompleted, r.claim.retention)
	case d == Held:
		o.memory.Recorded(r.hash, core.StateUnknown, r.claim.retention)
	}
	o.hooks.RunEnd(ctx, end)
}

// failure returns why the run failed. It is nil if it has not, if a guard inside has refused the request, and if the handler did
// not return.
func (r *Run) failure(d Disposition, o Outcome) error {
	said, reason := r.word.Said()
	switch {
	case d == Completed, !o.Returned, r.refused(o):
		return nil
	case said == seal.Held && reason != "":
		return errors.New("holdfast: the handler called Hold: " + reason)
	}
	return FailureOf(o.Response.Status, o.answered(), o.Failed)
}

// write ends the attempt.
func (r *Run) write(ctx context.Context, d Disposition, outcome Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, r.once.finishTimeout(r.answerBy))
	defer cancel()
	switch d {
	case Completed:
		return r.complete(ctx, outcome)
	case Held:
		return r.attempt.Hold(ctx, r.reason(outcome))
	default:
		return r.attempt.Release(ctx)
	}
}

// remember notes an end that Redis has not confirmed. That of a run without Redis is recorded when Redis is back.
func (r *Run) remember(d Disposition, outcome Outcome) {
	o := r.once
	e := outage.End{State: core.StateCompleted, Fingerprint: r.claim.fingerprint, Until: time.Now().Add(r.claim.retention)}
	if o.config.RetentionUntil != nil {
		e.Until = r.began.Add(r.claim.retention)
	}
	switch d {
	case Completed:
	case Held:
		e.State, e.Reason = core.StateUnknown, r.reason(outcome)
	default:
		return
	}
	if r.attempt == nil {
		e.Once = func(retention time.Duration) *core.Once { return r.claim.once(o.client, core.WithRetention(retention)) }
		e.Failed = func(err error) {
			o.log.incident(context.Background(), r.work(), core.IncidentUnrecorded, err)
		}
	}
	defer func() { o.memory.Ended(r.hash, e) }() // also if the codec panics
	if d == Completed && outcome.answered() {
		value, err := o.encode(outcome.Response, r.hash)
		if err != nil {
			o.incident(context.WithoutCancel(r.ctx), r.work(), core.IncidentUnrecorded, err)
			return
		}
		e.Value = value
	}
}

// complete records the answer; without it, if that could not be sealed.
func (r *Run) complete(ctx context.Context, outcome Outcome) (err error) {
	var value []byte
	defer func() { // also if the codec panics
		recorded := r.attempt.Complete(ctx, value)
		if errors.Is(recorded, core.ErrValueTooLarge) {
			recorded = nil // what is too large is omitted
		}
		err = errors.Join(recorded, err)
	}()
	if outcome.answered() {
		value, err = r.once.encode(outcome.Response, r.hash)
	}
	if err != nil {
		value = nil // what a codec returns with an error may not be sealed
	}
	return err
}

// reason is what an operator reads in the record: what the handler has said, or how it ended.
func (r *Run) reason(o Outcome) string {
	said, reason := r.word.Said()
	switch {
	case said == seal.Held && reason != "":
		return reason
	case !o.Returned:
		return "the handler did not return"
	case o.Failed:
		return "the handler reported errors"
	case !o.answered():
		return "the handler did not answer"
	}
	return "the handler answered with a failure"
}
