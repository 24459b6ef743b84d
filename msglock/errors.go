package msglock

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Action is what a consumer has to do with a message, see [Disposition].
type Action int

const (
	// Ack means that the message is done: it has taken effect, now or before.
	Ack Action = iota
	// Nack means that the broker has to deliver the message again. Where only offsets are committed, as in Kafka, stop at this
	// message: to commit a later offset of its partition would acknowledge it.
	Nack
	// Park means that delivering the message again does not help: move it to a dead-letter queue, then acknowledge it.
	Park
)

// String returns the name: "Ack", "Nack" or "Park".
func (a Action) String() string {
	if a < Ack || a > Park {
		return fmt.Sprintf("Action(%d)", int(a))
	}
	return [...]string{"Ack", "Nack", "Park"}[a]
}

// Disposition returns what to do with a message by the error of its guard, and the delay of a Nack. The delay is 0 if the guard
// has none to suggest, as after an error of the handler: then it is the broker's, or the consumer's own on Kafka.
func Disposition(err error) (Action, time.Duration) {
	var deferred *DeferredError
	var parked *ParkedError
	switch {
	case err == nil:
		return Ack, 0
	case errors.As(err, &parked), errors.Is(err, core.ErrOutcomeUnknown):
		return Park, 0
	case errors.As(err, &deferred):
		return Nack, max(deferred.RetryAfter, 0)
	}
	return Nack, 0
}

// DeferredError says that a message has to be delivered again, for a reason outside of it. The wrapped error is the
// reason: another message with its key is being handled ([core.ErrInProgress], [core.ErrNotAcquired]), its lease was
// lost ([core.ErrLeaseLost]), or Redis is unreachable ([core.ErrUnavailable]), or the database of its proof is
// ([core.ErrUndecided]). A handler may return one too, to set the delay.
type DeferredError struct {
	RetryAfter time.Duration
	Err        error
}

// Error returns the reason and the delay.
func (e *DeferredError) Error() string {
	return fmt.Sprintf("holdfast: msglock: message deferred for %v: %v", e.RetryAfter.Round(time.Millisecond), e.Err)
}

// Unwrap returns the reason.
func (e *DeferredError) Unwrap() error { return e.Err }

// ParkedError says that a message has to be looked at by a person. The wrapped error is the reason: [ErrNoKey],
// [core.ErrFingerprintMismatch] (see [ComparePayload]), or [core.ErrCompleted] if a result has to be replayed that was not recorded. A
// handler may return one too, for a message that it cannot read: its key stays free, unless the guard has [core.HoldFailures].
type ParkedError struct{ Err error }

// Error returns the reason.
func (e *ParkedError) Error() string {
	return fmt.Sprintf("holdfast: msglock: message parked: %v", e.Err)
}

// Unwrap returns the reason.
func (e *ParkedError) Unwrap() error { return e.Err }

// ErrNoKey says that a message has no key: it is nil, or its key is empty, or the key function has failed. The key "<nil>" is refused
// too, because fmt makes it of a field that is missing, so all messages without the field would share it.
var ErrNoKey = errors.New("holdfast: msglock: the message has no key")

// The reasons of a [core.NotRun] whose place is "message", beside [core.ReasonReplayed].
const (
	ReasonBusy        = guards.ReasonBusy        // deferred: another message with its key is being handled
	ReasonUnavailable = guards.ReasonUnavailable // deferred: Redis is unreachable, or refuses
	ReasonUndecided   = guards.ReasonUndecided   // deferred: the proof could not be asked, [core.ErrUndecided]
	ReasonNoKey       = guards.ReasonNoKey       // parked: [ErrNoKey]
	ReasonKeyReused   = guards.ReasonKeyReused   // parked: its payload differs from the first message's, [core.ErrFingerprintMismatch]
	ReasonUnknown     = guards.ReasonUnknown     // parked: nobody knows how an earlier run ended, [core.ErrOutcomeUnknown]
	ReasonNoResult    = guards.ReasonNoResult    // parked: an earlier run has completed, but its result was not recorded
	ReasonEnded       = guards.ReasonEnded       // its context ended before the handler was called
	ReasonGuardFailed = guards.ReasonGuardFailed // the lock or record cannot be used like this, a mistake of the program
)

// The bounds of a deferral's delay. Another message with the key mostly ends sooner than its lease.
const longestDelay, shortestDelay = 5 * time.Second, 100 * time.Millisecond

// deferral returns the error for a message that has to come again: about when the lease that is in its way may have ended. Those
// that were deferred together do not come again together.
func deferral(reason error, lease time.Duration) *DeferredError {
	if lease <= 0 || lease > longestDelay {
		lease = longestDelay
	}
	return &DeferredError{max(lease/2+rand.N(lease/2+1), shortestDelay), reason}
}

// refuse decides what becomes of a message whose handler is not called.
func (v *visit[M]) refuse(not *core.NotRun) {
	switch not.Reason {
	case ReasonNoKey, ReasonKeyReused, ReasonUnknown, ReasonNoResult:
		not.Err = &ParkedError{not.Err}
	case ReasonEnded:
		not.Err = &DeferredError{0, v.ctx.Err()}
	default:
		e := deferral(not.Err, not.RetryAfter)
		not.RetryAfter, not.Err = e.RetryAfter, e
	}
}

// logParked logs why a message is parked, unless the engine or a guard inside has. The text of a handler's error may have users' data.
func (v *visit[M]) logParked(err error) {
	action, _ := Disposition(err)
	own, _ := Disposition(v.err)
	if action != Park || guards.IsIdle(v.err) || own != Park && errors.Is(err, core.ErrOutcomeUnknown) {
		return
	}
	reason := "handler"
	switch {
	case errors.Is(err, ErrNoKey):
		reason = ReasonNoKey
	case v.err == nil && errors.Is(err, core.ErrFingerprintMismatch):
		reason = ReasonKeyReused
	case errors.Is(err, core.ErrCompleted):
		reason = ReasonNoResult
	}
	if v.err != nil {
		err = guards.KeyFailed(v.err)
	}
	kind := "parked " + reason + guards.InnerType(err)
	v.engine.Event(v.ctx, slog.LevelError, kind, "holdfast: msglock: message parked", v.ask.Work, err, slog.String("reason", reason))
}
