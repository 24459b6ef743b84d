package httpguard

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Disposition is what becomes of the record of a run.
type Disposition int

const (
	// Auto leaves it to the status, the panic, the errors. It is the zero value.
	Auto Disposition = iota
	// Completed: the run took effect and never runs again.
	Completed
	// Released: nothing happened, another request may run.
	Released
	// Held: the outcome is unknown, and no request may run until an operator has found out.
	Held
)

// String returns the name.
func (d Disposition) String() string {
	return [...]string{"auto", "completed", "released", "held"}[d]
}

// state is what a record of that disposition has.
func (d Disposition) state() core.State {
	switch d {
	case Completed:
		return core.StateCompleted
	case Held:
		return core.StateUnknown
	}
	return core.StateNone
}

// Outcome is how a handler ended.
type Outcome struct {
	// Returned is false if the handler panicked, with http.ErrAbortHandler too, or called runtime.Goexit.
	Returned bool
	// Failed is true if the handler reported errors and wrote nothing: a middleware around the guard will answer.
	Failed bool
	// Unanswered is true if the handler returned without writing anything. If its context was alive then, Response is
	// the empty answer that the server sends. If its context had ended, the status of Response is 0, because there is
	// no answer.
	Unanswered bool
	// Response is the handler's answer, with the body up to the record limit. If Omitted is true, the body is not
	// complete. Response is never nil. Its status is 0 if nothing was answered, and if the handler did not return.
	Response *Response
}

// answered reports whether there is an answer to record. A status of 0 is none, unless the handler took over the
// connection. Status 499 is none either: it says that no client was there to be answered.
func (o Outcome) answered() bool {
	switch {
	case !o.Returned, o.Failed, o.Response.Status == StatusClientGone:
		return false
	}
	return o.Response.Status != 0 || o.Response.Omitted
}

// disposition judges an outcome that neither the handler nor the application has judged: a run whose handler did not
// answer has no outcome to record. What it did is not known, so the failure policy decides.
func (c *Config) disposition(o Outcome, policy core.FailurePolicy) Disposition {
	status := o.Response.Status
	switch {
	case !o.answered(), status >= 500:
		if policy == core.HoldFailures {
			return Held
		}
		return Released
	case o.Unanswered && status >= 400: // of something around the guard, as of gin's for a path without a route
		return Released
	case temporary(status), status >= 400 && !c.CompleteRefusals:
		return Released
	}
	return Completed
}

// temporary reports whether a status says that the same request may fare better later: nothing has happened.
func temporary(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusConflict, http.StatusMisdirectedRequest, http.StatusLocked, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return true
	}
	return false
}

// inside is a run as the context of its handler knows it: [core.Complete], [core.Release] and [core.Hold] act on it.
type inside struct{ run *Run }

// Attempt implements [seal.Run].
func (i inside) Attempt() any { return i.run.attempt }

// KeyHash implements [seal.Run].
func (i inside) KeyHash() string { return i.run.hash }

// Declare implements [seal.Run]. Redis may take as long as [WithFinishTimeout] says.
func (i inside) Declare(ctx context.Context, d seal.Disposition, reason string) error {
	r := i.run
	r.word.Set(d, reason)
	if r.attempt == nil {
		return nil // fails open: there is no record
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.once.config.FinishTimeout)
	defer cancel()
	return seal.RunFrom(r.attempt.Context()).Declare(ctx, d, reason)
}

// Said implements [seal.Run].
func (i inside) Said() (seal.Disposition, string) { return i.run.word.Said() }

// said returns what the handler has said of its run.
func (r *Run) said() Disposition {
	d, _ := r.word.Said()
	return Disposition(d) // the values are the same
}
