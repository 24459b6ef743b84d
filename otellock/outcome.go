package otellock

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/core"
)

// The outcomes of an acquisition of a lock. For a Once, core's outcomes come before these.
const (
	acquired       = "acquired"
	refused        = "refused"          // TryLock, and the lock is held
	timedOut       = "timed_out"        // by WithWait or the deadline of the context
	canceled       = "canceled"         // the context
	tooManyWaiters = "too_many_waiters" // by WithMaxWaiters
	unavailable    = "unavailable"      // Redis does not answer
	closed         = "closed"           // the client
	failed         = "failed"           // any other error
)

// outcomeOf returns the outcome of a call of Lock, or of TryLock, that returned err.
func outcomeOf(err error, try bool) string {
	switch {
	case err == nil:
		return acquired
	case errors.Is(err, core.ErrTooManyWaiters):
		return tooManyWaiters
	case errors.Is(err, context.Canceled): // even in an outage: the caller has gone away
		return canceled
	case errors.Is(err, core.ErrUnavailable): // before the rest: a wait that timed out in an outage is both
		return unavailable
	case errors.Is(err, core.ErrClosed):
		return closed
	case errors.Is(err, context.DeadlineExceeded):
		return timedOut
	case !errors.Is(err, core.ErrNotAcquired):
		return failed
	case try:
		return refused
	}
	return timedOut
}

// isFailure reports whether a call with this outcome is an error of its span: of the system, not of the contest for a lock.
func isFailure(outcome string) bool {
	switch outcome {
	case unavailable, closed, failed:
		return true
	}
	return false
}

// The outcomes of a run, beside failed.
const (
	succeeded = "succeeded"
	panicked  = "panicked"
	lost      = "lost" // its lease was lost before it ended
)

// runOutcome returns the outcome of a run. leaseLost says that its guard has reported the loss of its lease.
func runOutcome(end core.RunEnd, leaseLost bool) string {
	switch {
	case end.Panicked:
		return panicked
	case leaseLost, errors.Is(end.Err, core.ErrLeaseLost):
		return lost
	case end.Err != nil:
		return failed
	}
	return succeeded
}

// outcomeUnknown is the reason of work that was refused because nobody knows whether an earlier run took effect.
const outcomeUnknown = "outcome_unknown"

// skipReason returns the reason of work that was not run. An unknown outcome of an earlier run has the same reason in all
// places, so that one alert sees it.
func skipReason(not core.NotRun) string {
	if errors.Is(not.Err, core.ErrOutcomeUnknown) {
		return outcomeUnknown
	}
	return word(not.Reason)
}

// The ends of a lease, beside the reasons of losses and the outcomes of attempts.
const (
	released    = "released"
	unconfirmed = "unconfirmed" // Redis has not answered; the client tries further
)

// renewalOutcome returns the outcome of a renewal that ended with err.
func renewalOutcome(err error) string {
	switch {
	case err == nil:
		return "renewed"
	case errors.Is(err, core.ErrPermission), errors.Is(err, core.ErrMisconfigured), errors.Is(err, core.ErrWrongType):
		return failed
	}
	return unavailable
}
