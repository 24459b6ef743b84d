package httplock

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Codes of refusals. They are part of the interface between an HTTP API and its clients, and do not change.
const (
	CodeKeyRequired     = "key-required"     // 400: the request has no key
	CodeKeyInvalid      = "key-invalid"      // 400: the key is too long, or there are several
	CodeBodyUnreadable  = "body-unreadable"  // 400: the body ended before its end
	CodeBodyTimeout     = "body-timeout"     // 408: the body did not arrive in time
	CodeTooManyBodies   = "too-many-bodies"  // 503: the bodies of other requests take all the memory for bodies
	CodeScopeRequired   = "scope-required"   // 401: no user is known for the request
	CodeLockConflict    = "lock-conflict"    // 409: another request of the same key is running
	CodeLimitReached    = "limit-reached"    // 429: as many requests of the same key as its semaphore allows are running
	CodeClientGone      = "client-gone"      // 499: the client left before its request could run
	CodeKeyFailed       = "key-failed"       // 500: the server could not make the key
	CodeGuardFailed     = "guard-failed"     // 500: the guard cannot be used like this, which no retry mends
	CodeLockUnavailable = "lock-unavailable" // 503: Redis could not be asked
	CodeUndecided       = "undecided"        // 503: the proof could not be asked whether an earlier request took effect
	CodeNotAnswered     = "not-answered"     // 503: the handler has not answered, because its context was over

	CodeRequestInProgress = "request-in-progress" // 409: another request of the same key is running, behind Once
	CodeAlreadyCompleted  = "already-completed"   // 409: a request of the same key took effect before
	CodeOutcomeUnknown    = "outcome-unknown"     // 409: the outcome of a request of the same key is unknown
	CodePayloadTooLarge   = "payload-too-large"   // 413: the body is larger than what can be compared
	CodeKeyReused         = "key-reused"          // 422: the key belongs to another request
	CodeTooEarly          = "too-early"           // 425: the request came in TLS early data
	CodeTooManyKeys       = "too-many-keys"       // 429: the scope has as many keys as are allowed
)

// StatusClientGone is the status of a request whose client left before it could run. It is nginx's.
const StatusClientGone = 499

// errBodyTooLarge says that the body of a request is larger than what its guard reads: 413.
var errBodyTooLarge = errors.New("holdfast: body too large")

// errEarly refuses TLS early data, which an attacker may have sent again.
var errEarly = errors.New("holdfast: early data")

// errClientGone says that the client left before its request could run.
var errClientGone = errors.New("holdfast: client gone")

// Conflict is why a request was refused, or what is answered in place of a handler whose context ended before it
// answered. It is an error too. Its text has the key's hash only, unless Cause came from
// a key function that says more.
type Conflict struct {
	// Status of the answer.
	Status int
	// Code is one of the constants of this package.
	Code string
	// RetryAfter is when another attempt makes sense, in whole seconds; 0 if that is unknown.
	RetryAfter time.Duration
	// Retryable is true if the same request may succeed later.
	Retryable bool
	// KeyHash identifies the key; it is empty if there was none.
	KeyHash string
	// Waited is how long the request waited.
	Waited time.Duration
	// Recorded is the answer of the request that took effect before, for already-completed. It may be nil, and has no body
	// unless answers are replayed.
	Recorded *Response
	// Cause is the error behind the refusal. It is for logs, not for clients.
	Cause error

	ran bool // the request was not refused: see [once.Do]
}

// Error returns the code and the text of the cause.
func (c *Conflict) Error() string {
	if c.Cause == nil {
		return "holdfast: request refused: " + c.Code
	}
	return "holdfast: request refused: " + c.Code + ": " + c.Cause.Error()
}

// Unwrap returns the cause.
func (c *Conflict) Unwrap() error { return c.Cause }

// newConflict fills in what follows from the code and the cause.
func newConflict(code string, cause error) *Conflict {
	v := verdicts[code]
	conflict := &Conflict{Status: v.status, Code: code, Retryable: v.retryable, Cause: cause}
	switch code {
	case CodeLockConflict, CodeRequestInProgress, CodeLimitReached:
		conflict.RetryAfter = afterConflict()
	case CodeLockUnavailable, CodeUndecided, CodeTooManyBodies, CodeNotAnswered:
		conflict.RetryAfter = afterOutage()
	}
	return conflict
}

// requestCode judges an error of the key or of the body.
func requestCode(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, errBodyUnreadable):
		return CodeBodyUnreadable
	case errors.Is(err, errBodyTimeout):
		return CodeBodyTimeout
	case errors.Is(err, errBodyMemory):
		return CodeTooManyBodies
	case errors.Is(err, errBodyRead):
		return CodeGuardFailed
	case errors.Is(err, ErrKeyRequired):
		return CodeKeyRequired
	case errors.Is(err, errBodyTooLarge):
		return CodePayloadTooLarge
	case errors.Is(err, errEarly):
		return CodeTooEarly
	case errors.Is(err, ErrKeyInvalid):
		return CodeKeyInvalid
	case errors.Is(err, ErrScopeRequired):
		return CodeScopeRequired
	case errors.Is(err, errClientGone), gone(ctx):
		return CodeClientGone
	}
	return CodeKeyFailed
}

// engineCode judges an error for which the engine does not run a request. The order matters: whoever waits until Redis thaws, or
// leaves while it is frozen, gets an error that is [core.ErrNotAcquired] as well.
func engineCode(ctx context.Context, err error) string {
	switch {
	case gone(ctx):
		return CodeClientGone
	case errors.Is(err, core.ErrUndecided):
		return CodeUndecided
	case errors.Is(err, core.ErrUnavailable):
		return CodeLockUnavailable
	case errors.Is(err, core.ErrNotAcquired):
		return CodeLockConflict
	case errors.Is(err, core.ErrCompleted):
		return CodeAlreadyCompleted
	case errors.Is(err, core.ErrInProgress):
		return CodeRequestInProgress
	case errors.Is(err, core.ErrOutcomeUnknown):
		return CodeOutcomeUnknown
	case errors.Is(err, core.ErrFingerprintMismatch):
		return CodeKeyReused
	case errors.Is(err, core.ErrTooManyKeys):
		return CodeTooManyKeys
	case errors.Is(err, errEarly):
		return CodeTooEarly
	case guards.Mistaken(err):
		return CodeGuardFailed
	}
	return CodeLockUnavailable
}

const (
	conflictRetry = 2 // seconds at most
	outageRetry   = 5
)

// afterConflict returns when to come back to a key that another request holds. Most runs are over by then. The lease of
// the other run would be a bad guess: it only says when a crashed run will be out of the way.
func afterConflict() time.Duration { return upTo(conflictRetry) }

func afterOutage() time.Duration { return upTo(outageRetry) }

// upTo returns a random number of whole seconds, so that clients that were refused together do not come back together.
func upTo(most int64) time.Duration {
	return time.Duration(1+rand.Int64N(most)) * time.Second
}

// wholeSeconds rounds up, for a time that is certain.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// What is logged beside the lines of all guards. Refusals that clients cause are not: their number is up to the clients.
const (
	logKeyFailed = "holdfast: the key of a request could not be made, the request was refused"
	logBodyRead  = "holdfast: the body of a request was read in front of its guard, the request was refused"

	logOtherRoute = "holdfast: the key of a request has the recorded response of another route, which is not replayed"
)

// logRefused logs a request that is refused by the server's fault, before Redis was asked.
func (g *guard) logRefused(ctx context.Context, w core.Work, c *Conflict) {
	switch c.Code {
	case CodeKeyFailed:
		g.engine.Event(ctx, slog.LevelError, c.Code, logKeyFailed, w, guards.KeyFailed(c.Cause))
	case CodeGuardFailed:
		g.engine.Event(ctx, slog.LevelError, c.Code, logBodyRead, w, c.Cause)
	}
}

// sealFailure is an error of a codec. The log has its type only: the codec knows the whole answer.
type sealFailure struct{ error }

func (f sealFailure) Unwrap() error { return f.error }

// LogValue returns the type of the error.
func (f sealFailure) LogValue() slog.Value {
	return slog.StringValue("the codec could not seal the answer: " + guards.InnerType(f.error))
}
