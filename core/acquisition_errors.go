package core

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/holdfast-go/holdfast/core/internal/oncescript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Reasons for another request with a new hold.
var (
	errTooLate      = errors.New("answered after the lease had ended")
	errHoldReleased = errors.New("given up before")
)

// timeUpError is the error of an acquisition whose time is up.
func (r *acquisition) timeUpError(caller context.Context) error {
	cause := ended(caller)
	switch {
	case cause == nil && r.keeper.operations.IsClosed():
		return ErrClosed
	case r.lastErr != nil && !timedOutFirst(r.lastErr):
		return r.unavailable(cause)
	case r.lastErr != nil && r.looksLikeOutage() && r.outageErr != nil:
		cause = errors.Join(errorf("%w: %w", ErrUnavailable, publicAck(r.outageErr)), cause)
	case r.lastErr != nil && r.looksLikeOutage():
		cause = errors.Join(ErrUnavailable, cause)
	}
	return &NotAcquiredError{Name: r.hold.Name, RetryAfter: max(r.HolderTTL, 0), cause: cause}
}

// ended returns why a caller's context is over, nil if it is not.
func ended(caller context.Context) error {
	err := caller.Err()
	if cause := context.Cause(caller); cause != err {
		return errors.Join(err, cause)
	}
	return err
}

// timedOutFirst reports whether err says only that the time was up before the answer, or before a connection was made.
func timedOutFirst(err error) bool {
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

// looksLikeOutage reports whether Redis has never answered this acquisition, or not within transport.StallTimeout.
func (r *acquisition) looksLikeOutage() bool {
	return !r.redisAnswered || r.keeper.now().Sub(r.sentAt) >= transport.StallTimeout
}

// kind is what errors call it.
func (r *acquisition) kind() string {
	if _, once := r.hold.Own.(*oncescript.Terms); once {
		return "once"
	}
	return "lock"
}

// unavailable is the error of a request that met with an outage.
func (r *acquisition) unavailable(cause error) error {
	err := errorf("holdfast: %s %q: %w: %w", r.kind(), r.hold.Name, ErrUnavailable, publicAck(r.lastErr))
	if cause != nil {
		err = errorf("%w: %w", err, cause)
	}
	return err
}

// publicRefusal returns the error of the API for the refusal of a strategy.
func publicRefusal(name string, refused error) error {
	var once *oncescript.Refusal
	if errors.As(refused, &once) {
		return onceError(name, once)
	}
	return fmt.Errorf("%w: %q", ErrUpgrade, name)
}

// tooManyWaiters is the error of a call beyond the limit of [WithMaxWaiters].
func tooManyWaiters(limit int) error {
	return fmt.Errorf("%w: %d of this client do, see WithMaxWaiters", ErrTooManyWaiters, limit)
}
