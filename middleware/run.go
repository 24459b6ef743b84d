package middleware

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Run is a request that a [Once] lets through. It owes a [Run.Finish].
type Run struct {
	once     *Once
	attempt  *core.Attempt // nil if the guard fails open
	hash     string
	began    time.Time
	ctx      context.Context
	cancel   context.CancelFunc
	outer    *Run
	word     atomic.Int32 // the handler's, a Disposition
	finished atomic.Bool
}

type runKey struct{}

// runFrom returns the innermost run of which ctx is the context, nil if there is none.
func runFrom(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}

// newRun makes the context of a handler.
func (o *Once) newRun(ctx context.Context, hash string, attempt *core.Attempt) *Run {
	r := &Run{once: o, attempt: attempt, hash: hash, began: time.Now(), outer: runFrom(ctx)}
	if o.config.Detached {
		ctx = context.WithoutCancel(ctx)
	}
	ctx = context.WithValue(ctx, runKey{}, r)
	if attempt == nil {
		r.ctx, r.cancel = context.WithCancel(ctx)
	} else {
		r.ctx, r.cancel = attempt.Bind(ctx)
	}
	return r
}

// Context is what the handler gets: it ends when that of the request ends, or the lease is lost, and carries the fencing
// token and the facts for [Attempt], [KeyHash] and [Degraded].
func (r *Run) Context() context.Context { return r.ctx }

// Capture returns up to how many bytes of the answer are to be held back until [Run.Finish] has returned, so that a
// client that has read its answer finds it recorded, and whether the record has use for the body.
func (r *Run) Capture() (bytes int, body bool) {
	return r.once.config.RecordLimit, r.once.config.Replay
}

// Finish records how the handler ended, within a few seconds at most, whatever becomes of the client. The second call
// does nothing. Only then should the answer be sent.
func (r *Run) Finish(outcome Outcome) {
	if !r.finished.CompareAndSwap(false, true) {
		return
	}
	o := r.once
	ctx := context.WithoutCancel(r.ctx)
	defer r.cancel()
	held := time.Since(r.began)
	o.holds.add(held)
	d := Disposition(r.word.Load())
	if d == Auto {
		d = o.config.disposition(outcome)
	}
	end := Finished{KeyHash: r.hash, Held: held, Disposition: d}
	if r.attempt != nil {
		if lost := context.Cause(r.attempt.Context()); lost != nil {
			o.failed(ctx, Failure{KeyHash: r.hash, Operation: "run", Err: lost})
		}
		end.Attempt, end.Err = r.attempt.Number(), r.write(ctx, d, outcome)
		if end.Err != nil {
			o.failed(ctx, Failure{KeyHash: r.hash, Operation: "finish", Err: end.Err})
		}
	}
	if d == Held {
		o.log.unknown(ctx, r.hash)
	}
	if o.config.Hooks.Finished != nil {
		o.config.Hooks.Finished(ctx, end)
	}
}

// write ends the attempt.
func (r *Run) write(ctx context.Context, d Disposition, outcome Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, r.once.config.FinishTimeout)
	defer cancel()
	switch d {
	case Completed:
		value, sealing := r.once.encode(outcome.Response, r.hash)
		err := r.attempt.Complete(ctx, value) // without value, if that could not be sealed
		if errors.Is(err, core.ErrValueTooLarge) {
			err = nil // what is too large is omitted
		}
		return errors.Join(err, sealing)
	case Held:
		return r.attempt.Hold(ctx, reason(outcome))
	default:
		return r.attempt.Release(ctx)
	}
}

// reason is what an operator reads in the record.
func reason(o Outcome) string {
	switch {
	case !o.Returned:
		return "the handler did not return"
	case o.Failed:
		return "the handler reported errors"
	}
	return "the handler answered with a failure"
}

// Attempt returns which attempt for its key a guarded request is, from 1; 0 if ctx is not that of a request behind
// Once or Idempotent, or if that fails open.
func Attempt(ctx context.Context) int {
	if r := runFrom(ctx); r != nil && r.attempt != nil {
		return r.attempt.Number()
	}
	return 0
}

// KeyHash returns the hash of the key of a request behind Once or Idempotent, "" if ctx is not that of one.
func KeyHash(ctx context.Context) string {
	if r := runFrom(ctx); r != nil {
		return r.hash
	}
	return ""
}
