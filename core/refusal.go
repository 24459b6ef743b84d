package core

import (
	"context"
	"errors"
	"net"
)

// refusal is the error of a request whose time was up.
func (r *request) refusal(caller context.Context) error {
	cause := ended(caller)
	switch {
	case cause == nil && r.keeper.lifecycle.isClosed():
		return ErrClosed
	case r.lastErr != nil && !cutOff(r.lastErr):
		return r.unavailable(cause)
	case r.lastErr != nil && r.silent() && r.reason != nil:
		cause = errors.Join(errorf("%w: %w", ErrUnavailable, r.reason), cause)
	case r.lastErr != nil && r.silent():
		cause = errors.Join(ErrUnavailable, cause)
	}
	return &NotAcquiredError{Name: r.hold.name, RetryAfter: max(r.holderTTL, 0), cause: cause}
}

// ended returns why a caller's context is over, nil if it is not.
func ended(caller context.Context) error {
	err := caller.Err()
	if cause := context.Cause(caller); cause != err {
		return errors.Join(err, cause)
	}
	return err
}

// cutOff reports whether a request has no answer only because the time was up before, for the answer or for a connection.
func cutOff(err error) bool {
	var timeout net.Error
	if unwritten(err) && errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	for _, end := range []error{errNotSent, errNotAnswered, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// silent reports whether that looks like an outage: Redis has never answered this call, or not for a while.
func (r *request) silent() bool {
	return !r.heard || r.keeper.now().sub(r.sentAt) >= stallTimeout
}

// unavailable is the error of a request that met with an outage.
func (r *request) unavailable(cause error) error {
	err := errorf("holdfast: %s %q: %w: %w", r.hold.kind(), r.hold.name, ErrUnavailable, r.lastErr)
	if cause != nil {
		err = errorf("%w: %w", err, cause)
	}
	return err
}
