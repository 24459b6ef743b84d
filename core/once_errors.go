package core

import (
	"fmt"
	"time"
)

// InProgressError is the [ErrInProgress] of one call.
type InProgressError struct {
	// Key of the Once.
	Key string
	// RetryAfter is what the lease of the running attempt has left, by the server's clock when it was last asked. It may
	// be renewed, or the run may end sooner. Zero if unknown.
	RetryAfter time.Duration

	cause error // why the wait ended early, or did not begin; nil if it was not that
}

// Error tells what is in progress and for how long.
func (e *InProgressError) Error() string {
	text := fmt.Sprintf("holdfast: once %q: another attempt is in progress", e.Key)
	if e.cause != nil {
		return text + ": " + bareText(e.cause)
	}
	return fmt.Sprintf("%s, with a lease of %v", text, e.RetryAfter)
}

// Unwrap makes the error [ErrInProgress] and, if a context ended the wait, that context's error too, or
// [ErrTooManyWaiters] if there was no wait for that reason.
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

// Error tells which attempt completed.
func (e *CompletedError) Error() string {
	return fmt.Sprintf("holdfast: once %q: completed by attempt %d", e.Record.Key, e.Record.Attempt)
}

// Unwrap makes the error [ErrCompleted].
func (e *CompletedError) Unwrap() error { return ErrCompleted }

// OutcomeUnknownError is the [ErrOutcomeUnknown] of one call.
type OutcomeUnknownError struct {
	// Record of the attempt of which nobody knows how it ended.
	Record Record
}

// Error tells which attempt that was.
func (e *OutcomeUnknownError) Error() string {
	text := fmt.Sprintf("holdfast: once %q: outcome of attempt %d unknown", e.Record.Key, e.Record.Attempt)
	if e.Record.Reason != "" {
		text += fmt.Sprintf(": %q", e.Record.Reason)
	}
	return text
}

// Unwrap makes the error [ErrOutcomeUnknown].
func (e *OutcomeUnknownError) Unwrap() error { return ErrOutcomeUnknown }

// TooManyKeysError is the [ErrTooManyKeys] of one call.
type TooManyKeysError struct {
	// Key of the Once.
	Key string
	// Bytes tells that the records of the group take as much memory as [WithQuotaBytes] allows; otherwise there are as
	// many as [WithQuota] allows.
	Bytes bool
	// RetryAfter is when the first record of the group expires, by the server's clock. There may be no room then yet.
	RetryAfter time.Duration
}

// Error tells of what there is too much, and for how long at least.
func (e *TooManyKeysError) Error() string {
	what := "another record"
	if e.Bytes {
		what = "the bytes of another record"
	}
	return fmt.Sprintf("holdfast: once %q: its group has no room for %s for %v", e.Key, what, e.RetryAfter)
}

// Unwrap makes the error [ErrTooManyKeys].
func (e *TooManyKeysError) Unwrap() error { return ErrTooManyKeys }

// OutsideWindowError is the [ErrOutsideWindow] of one call.
type OutsideWindowError struct {
	// Key of the Once.
	Key string
	// Early tells that the window had not begun; otherwise it had ended.
	Early bool
	// ServerTime is when that was, by the server's clock.
	ServerTime time.Time
}

// Error tells on which side of the window that was.
func (e *OutsideWindowError) Error() string {
	side := "late"
	if e.Early {
		side = "early"
	}
	return fmt.Sprintf("holdfast: once %q: too %s to begin: it is %s on the server",
		e.Key, side, e.ServerTime.Format(time.RFC3339Nano))
}

// Unwrap makes the error [ErrOutsideWindow].
func (e *OutsideWindowError) Unwrap() error { return ErrOutsideWindow }
