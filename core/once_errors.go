package core

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/oncescript"
)

// InProgressError is the [ErrInProgress] of one call.
type InProgressError struct {
	// Key of the Once.
	Key string
	// RetryAfter is the rest of the running attempt's lease, by the server's clock at the last answer. The lease may
	// be renewed, or the run may end sooner. Zero if unknown.
	RetryAfter time.Duration

	cause error // why the wait ended early, or did not begin; nil if it was not that
}

// Error returns what is in progress and the rest of its lease.
func (e *InProgressError) Error() string {
	text := fmt.Sprintf("holdfast: once %q: another attempt is in progress", e.Key)
	if e.cause != nil {
		return text + ": " + bareText(e.cause)
	}
	return fmt.Sprintf("%s, with a lease of %v", text, e.RetryAfter)
}

// Unwrap returns [ErrInProgress]. If a context ended the wait, Unwrap also returns that context's error. If there was
// no wait because of [WithMaxWaiters], it also returns [ErrTooManyWaiters].
func (e *InProgressError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrInProgress}
	}
	return []error{ErrInProgress, e.cause}
}

// CompletedError is the [ErrCompleted] of one call.
type CompletedError struct {
	// Record of the completed run.
	Record Record
}

// Error returns the key and the number of the completed attempt.
func (e *CompletedError) Error() string {
	return fmt.Sprintf("holdfast: once %q: completed by attempt %d", e.Record.Key, e.Record.Attempt)
}

// Unwrap returns [ErrCompleted].
func (e *CompletedError) Unwrap() error { return ErrCompleted }

// OutcomeUnknownError is the [ErrOutcomeUnknown] of one call.
type OutcomeUnknownError struct {
	// Record of the attempt with the unknown outcome.
	Record Record
}

// Error returns the key and the number of the attempt.
func (e *OutcomeUnknownError) Error() string {
	text := fmt.Sprintf("holdfast: once %q: outcome of attempt %d unknown", e.Record.Key, e.Record.Attempt)
	if e.Record.Reason != "" {
		text += fmt.Sprintf(": %q", e.Record.Reason)
	}
	return text
}

// Unwrap returns [ErrOutcomeUnknown].
func (e *OutcomeUnknownError) Unwrap() error { return ErrOutcomeUnknown }

// TooManyKeysError is the [ErrTooManyKeys] of one call.
type TooManyKeysError struct {
	// Key of the Once.
	Key string
	// Bytes is true if the records of the group take as much memory as [WithQuotaBytes] allows. It is false if there
	// are as many as [WithQuota] allows.
	Bytes bool
	// RetryAfter is the time after which the first record of the group expires, by the server's clock. The group may
	// still be full then.
	RetryAfter time.Duration
}

// Error returns which bound was reached, and the time after which to retry.
func (e *TooManyKeysError) Error() string {
	what := "another record"
	if e.Bytes {
		what = "the bytes of another record"
	}
	return fmt.Sprintf("holdfast: once %q: its group has no room for %s for %v", e.Key, what, e.RetryAfter)
}

// Unwrap returns [ErrTooManyKeys].
func (e *TooManyKeysError) Unwrap() error { return ErrTooManyKeys }

// OutsideWindowError is the [ErrOutsideWindow] of one call.
type OutsideWindowError struct {
	// Key of the Once.
	Key string
	// Early is true if the window had not begun, and false if it had ended.
	Early bool
	// ServerTime is the time of the refusal, by the server's clock.
	ServerTime time.Time
}

// Error returns on which side of the window the attempt was.
func (e *OutsideWindowError) Error() string {
	side := "late"
	if e.Early {
		side = "early"
	}
	return fmt.Sprintf("holdfast: once %q: too %s to begin: it is %s on the server",
		e.Key, side, e.ServerTime.Format(time.RFC3339Nano))
}

// Unwrap returns [ErrOutsideWindow].
func (e *OutsideWindowError) Unwrap() error { return ErrOutsideWindow }

// onceError returns the error of the API for a refusal.
func onceError(key string, r *oncescript.Refusal) error {
	switch r.Kind {
	case oncescript.Completed:
		return &CompletedError{Record: newRecord(key, r.Record)}
	case oncescript.OutcomeUnknown:
		return &OutcomeUnknownError{Record: newRecord(key, r.Record)}
	case oncescript.InProgress:
		return &InProgressError{Key: key, RetryAfter: r.RetryAfter}
	case oncescript.TooManyRecords, oncescript.TooManyBytes:
		return &TooManyKeysError{Key: key, Bytes: r.Kind == oncescript.TooManyBytes, RetryAfter: r.RetryAfter}
	case oncescript.TooEarly, oncescript.TooLate:
		return &OutsideWindowError{Key: key, Early: r.Kind == oncescript.TooEarly, ServerTime: r.ServerTime}
	}
	return fmt.Errorf("%w: once %q", ErrFingerprintMismatch, key)
}
