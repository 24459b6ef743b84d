package acquire

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// ErrWaiterLimit is the end of an acquisition that may not wait because as many callers as the limit allows do.
var ErrWaiterLimit = errors.New("as many callers wait as may")

// ErrTooLate is what a [Caller] returns for a grant whose time was up before it arrived.
var ErrTooLate = errors.New("answered after the lease had ended")

// The ends of a request that are not errors of a command.
var (
	// errBusy is the answer that another owner has the lock. It never leaves this package.
	errBusy = errors.New("another owner has the lock")
	// errHoldReleased is the answer that this hold was released before the request arrived. It counts as an unknown outcome, so
	// the request is repeated, with another hold.
	errHoldReleased = errors.New("given up before")
)

// RefusedError is the end of an acquisition that waiting would not help. Waiters with the same question may share it.
type RefusedError struct{ Refused *script.Refusal }

// Error returns a text for tests. The API has an error for each kind of refusal.
func (e *RefusedError) Error() string { return fmt.Sprintf("refused: %d", e.Refused.Kind) }

// UnavailableError is the end of an acquisition that met with an outage. The waiters of a list may share it.
type UnavailableError struct{ Last error }

// Error returns the error of the last request.
func (e *UnavailableError) Error() string { return fmt.Sprintf("unavailable: %v", e.Last) }

// FailedError is the end of an acquisition with an error that a repeated request would meet too.
type FailedError struct{ Err error }

// Error returns the error of the request.
func (e *FailedError) Error() string { return e.Err.Error() }

// WaitEnded returns true if err says only that the time was up before the answer, or before a connection was made. Such an
// error is no sign of an outage: the wait may have been too short.
func WaitEnded(err error) bool {
	var timeout net.Error
	if transport.Unwritten(err) && errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	for _, end := range []error{transport.ErrNotSent, transport.ErrNotAnswered, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// LooksLikeOutage returns true if Redis has never answered this acquisition, or has not answered its last request although
// that was sent transport.StallTimeout ago. It is for an acquisition whose last request has no answer.
func (a *Acquisition) LooksLikeOutage() bool {
	return !a.Answered || a.Env.Now().Sub(a.sentAt) >= transport.StallTimeout
}
