package httpguard

import "net/http"

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

// Handled is how a handler ended.
type Handled struct {
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
func (o Handled) answered() bool {
	switch {
	case !o.Returned, o.Failed, o.Response.Status == StatusClientGone:
		return false
	}
	return o.Response.Status != 0 || o.Response.Omitted
}

// disposition judges an outcome that neither the handler nor the application has judged: a run whose handler did not
// answer has no outcome to record. What it did is not known, so the failure policy decides.
func (c *Config) disposition(o Handled) Disposition {
	status := o.Response.Status
	switch {
	case !o.answered(), status >= 500:
		return Auto
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
