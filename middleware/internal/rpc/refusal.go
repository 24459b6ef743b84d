package rpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
)

// Replayed is the name of the metadata that marks a response which was recorded before. Its value is "true".
const Replayed = "idempotency-replayed"

// Domain is the domain of the ErrorInfo of refusals.
const Domain = "holdfast"

// verdict is what a call is answered for which the guard, and not a handler, has a response.
type verdict struct {
	reason string // of the ErrorInfo; hooks get it in lower case, with hyphens
	code   code.Code
	text   string
	retry  time.Duration // random up to it; 0 for none
}

// The verdicts.
var (
	keyRequired       = verdict{"KEY_REQUIRED", code.Code_INVALID_ARGUMENT, "the call lacks its key", 0}
	keyInvalid        = verdict{"KEY_INVALID", code.Code_INVALID_ARGUMENT, "the key of the call is malformed", 0}
	scopeRequired     = verdict{"SCOPE_REQUIRED", code.Code_UNAUTHENTICATED, "no user is known for the call", 0}
	keyFailed         = verdict{"KEY_FAILED", code.Code_INTERNAL, "the server cannot make the key of the call", 0}
	guardFailed       = verdict{"GUARD_FAILED", code.Code_INTERNAL, "the call cannot be guarded", 0}
	clientGone        = verdict{"CLIENT_GONE", code.Code_CANCELLED, "the client has cancelled the call before it ran", 0}
	deadlineExceeded  = verdict{"DEADLINE_EXCEEDED", code.Code_DEADLINE_EXCEEDED, "the deadline has passed before the call ran", 0}
	lockConflict      = verdict{"LOCK_CONFLICT", code.Code_ABORTED, "another call with this key is running", conflictRetry}
	requestInProgress = verdict{"REQUEST_IN_PROGRESS", code.Code_ABORTED, "another call with this key is running", conflictRetry}
	alreadyCompleted  = verdict{"ALREADY_COMPLETED", code.Code_ALREADY_EXISTS, "a call with this key has taken effect before", 0}
	typeUnknown       = verdict{"RESPONSE_TYPE_UNKNOWN", code.Code_ALREADY_EXISTS, "a call with this key has taken effect before, but this server does not know the type of its response", 0}
	outcomeUnknown    = verdict{"OUTCOME_UNKNOWN", code.Code_FAILED_PRECONDITION, "the outcome of an earlier call with this key is unknown; an operator has to find out", 0}
	keyReused         = verdict{"IDEMPOTENCY_KEY_REUSED", code.Code_INVALID_ARGUMENT, "the key belongs to another call", 0}
	tooManyKeys       = verdict{"TOO_MANY_KEYS", code.Code_RESOURCE_EXHAUSTED, "there are as many keys as are allowed", 0}
	lockUnavailable   = verdict{"LOCK_UNAVAILABLE", code.Code_UNAVAILABLE, "the server cannot guard the call now", outageRetry}
	undecided         = verdict{"UNDECIDED", code.Code_UNAVAILABLE, "the server cannot find out whether an earlier call with this key took effect", outageRetry}
	leaseLost         = verdict{"LEASE_LOST", code.Code_ABORTED, "the server has lost the lock while the call ran", conflictRetry}
	noAnswer          = verdict{"NO_ANSWER", code.Code_INTERNAL, "the handler returned neither a message nor an error", 0}
)

const (
	conflictRetry = 2 * time.Second
	outageRetry   = 5 * time.Second
)

// A Refusal is what a call is answered in place of a response of its handler. Its text has nothing that the client has sent.
type Refusal struct {
	// Status is the answer, with its details.
	Status *spb.Status
	// Reason is the reason of the ErrorInfo.
	Reason string

	retryAfter time.Duration
	cause      error
}

// Error implements error.
func (r *Refusal) Error() string {
	text := "holdfast: call refused: " + r.Reason
	if r.cause != nil {
		text += ": " + r.cause.Error()
	}
	return text
}

// Unwrap returns the reason as an error of core or of a key function.
func (r *Refusal) Unwrap() error { return r.cause }

// word is the reason for hooks: the code of the same refusal by a guard for HTTP, if there is one.
func (r *Refusal) word() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(r.Reason, "IDEMPOTENCY_")), "_", "-")
}

// refusal makes the answer of a verdict. after is when a retry makes sense, if that is known better than by the verdict.
func (v verdict) refusal(cause error, after time.Duration) *Refusal {
	if v.retry > 0 { // random, so that clients that were refused together do not come back together
		after = v.retry/4 + rand.N(v.retry*3/4)
	} else if v.code != code.Code_RESOURCE_EXHAUSTED {
		after = 0
	}
	r := &Refusal{
		Status: &spb.Status{Code: int32(v.code), Message: "holdfast: " + v.text}, Reason: v.reason, retryAfter: after, cause: cause,
	}
	r.detail(&errdetails.ErrorInfo{Reason: v.reason, Domain: Domain})
	if after > 0 {
		r.detail(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	var told *keyError
	if errors.As(cause, &told) {
		r.Status.Message += ": " + told.field + " " + told.text
		r.detail(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: told.field, Description: told.text},
		}})
	} else if v == keyRequired || v == keyInvalid {
		r.detail(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "key", Description: v.text},
		}})
	}
	var unknown *typeError
	if errors.As(cause, &unknown) { // the rest of the cause has the name of the record, which is not the client's business
		r.Status.Message += ": " + string(unknown.name)
	}
	return r
}

func (r *Refusal) detail(m proto.Message) {
	if detail, err := anypb.New(m); err == nil {
		r.Status.Details = append(r.Status.Details, detail)
	}
}

// ofKey returns the verdict about a call whose key could not be made.
func ofKey(err error) verdict {
	switch {
	case errors.Is(err, ErrKeyRequired):
		return keyRequired
	case errors.Is(err, ErrKeyInvalid):
		return keyInvalid
	case errors.Is(err, ErrScopeRequired):
		return scopeRequired
	}
	return keyFailed
}

// of returns the verdict about a call that the guard did not let run. The order is the same as in package guard.
func of(ctx context.Context, err error) verdict {
	var unknown *typeError
	switch {
	case errors.Is(ctx.Err(), context.Canceled) && !errors.Is(context.Cause(ctx), core.ErrLeaseLost):
		return clientGone
	case errors.Is(err, core.ErrUndecided):
		return undecided
	case errors.Is(err, core.ErrUnavailable):
		return lockUnavailable
	case errors.Is(err, core.ErrInProgress):
		return requestInProgress
	case errors.Is(err, core.ErrNotAcquired):
		return lockConflict
	case errors.As(err, &unknown):
		return typeUnknown
	case errors.Is(err, core.ErrCompleted):
		return alreadyCompleted
	case errors.Is(err, core.ErrFingerprintMismatch):
		return keyReused
	case errors.Is(err, core.ErrOutcomeUnknown):
		return outcomeUnknown
	case errors.Is(err, core.ErrTooManyKeys):
		return tooManyKeys
	case ctx.Err() != nil:
		return deadlineExceeded
	case guard.Mistaken(err):
		return guardFailed
	}
	return lockUnavailable
}

// class is what a code says of a run.
type class int

const (
	completed class = iota
	released        // nothing has happened: the same call may fare better later
	decided         // a decision about the call, which the same call would get again
	failed          // the run may have taken effect
)

// classOf returns what the code of an error says of a run.
func classOf(c int32) class {
	switch code.Code(c) {
	case code.Code_OK:
		return completed
	case code.Code_RESOURCE_EXHAUSTED, code.Code_ABORTED, code.Code_UNAUTHENTICATED, code.Code_PERMISSION_DENIED:
		return released
	case code.Code_INVALID_ARGUMENT, code.Code_NOT_FOUND, code.Code_ALREADY_EXISTS, code.Code_FAILED_PRECONDITION,
		code.Code_OUT_OF_RANGE, code.Code_UNIMPLEMENTED:
		return decided
	}
	return failed // also what is no code
}

// retried reports whether clients retry calls by themselves that ended with a code.
func retried(c int32) bool {
	switch code.Code(c) {
	case code.Code_UNAVAILABLE, code.Code_ABORTED, code.Code_RESOURCE_EXHAUSTED:
		return true
	}
	return false
}

func codeName(c int32) string {
	if name, ok := code.Code_name[c]; ok {
		return name
	}
	return fmt.Sprintf("CODE(%d)", c)
}
