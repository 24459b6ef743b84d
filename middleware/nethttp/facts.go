package httplock

import (
	"context"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// Payload is what a request asks for, for [WithFingerprint]. Its fields are Method, Host, Target, Path, Query, ContentType and
// ContentEncoding, which are strings; Header, an [http.Header] with the fields that [WithComparedHeader] names; and Body, the bytes
// of the body. Of a form that was parsed in front of the guard, Body has the fields in the order of their names.
type Payload = httpguard.Payload

// Handled is how a handler ended, for [WithCompletion]. Its fields are Returned, which is false after a panic or [runtime.Goexit];
// Failed, which is true if the handler reported errors and wrote nothing, as handlers of gin can; Unanswered, which is true if it
// returned without writing anything; and Response, a *[Response] that is never nil.
type Handled = httpguard.Handled

// Response is a response as it is recorded. Its fields are Status, an int that is 0 if nothing was answered; Header, an
// [http.Header] with what the handler has added or changed; Body, its bytes; and Omitted, which is true if the body was not
// recorded, or not completely.
type Response = httpguard.Response

// Disposition is what becomes of the record of a run, as [WithCompletion] decides.
type Disposition = httpguard.Disposition

// The dispositions.
const (
	Auto      = httpguard.Auto      // the default judgement, by the status
	Completed = httpguard.Completed // it took effect: recorded, and no request of its key runs again
	Released  = httpguard.Released  // it did nothing: the next request of its key runs
	Held      = httpguard.Held      // nobody knows: the outcome is unknown until an operator decides
)

// Degraded returns true if ctx is that of a request which runs unguarded: see [FailOpen].
func Degraded(ctx context.Context) bool { return httpguard.Degraded(ctx) }
