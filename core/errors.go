package core

import (
	"errors"
	"fmt"
	"time"
)

// Errors of this package. Ask with errors.Is; the values that come back carry more.
var (
	// ErrNotAcquired says that the lock is held by someone else, or that the caller's context or its
	// [WithWait] ended before it was granted. See [NotAcquiredError] for the facts. An outage alone is not
	// ErrNotAcquired; a wait that ended while Redis did not answer is both, so ask for [ErrUnavailable] first.
	ErrNotAcquired = errors.New("holdfast: lock not acquired")

	// ErrTooManyWaiters says that as many callers wait for the name as [WithMaxWaiters] allows. It comes with
	// [ErrNotAcquired], or [ErrInProgress] of a [Once].
	ErrTooManyWaiters = errors.New("holdfast: too many callers wait for the name")

	// ErrNotHeld is returned by Unlock and Extend of a lease that is already over: unlocked before, lost, or
	// released by [Client.Close]. It is also the cause with which the context of an unlocked lease ends.
	ErrNotHeld = errors.New("holdfast: lock not held")

	// ErrLeaseLost is the cause with which a lease's context ends when the lock went without being unlocked:
	// its time ran out before a renewal succeeded, it was forced, it was taken over, [WithMaxHold] passed, or
	// its holder gave it up with [Lease.Abandon]. Its text tells which, as far as Redis does.
	ErrLeaseLost = errors.New("holdfast: lease lost")

	// ErrUpgrade refuses a write lock to an owner that holds the read side: it would wait for itself.
	ErrUpgrade = errors.New("holdfast: read lock cannot be upgraded to a write lock")

	// ErrClosed is returned once [Client.Close] was called, and is the cause with which leases end then.
	ErrClosed = errors.New("holdfast: client closed")

	// ErrInvalidName refuses a lock name, with the reason.
	ErrInvalidName = errors.New("holdfast: invalid lock name")

	// ErrInvalidOption refuses an option's value or a constructor's argument, with its name and the reason.
	ErrInvalidOption = errors.New("holdfast: invalid option")

	// ErrUnavailable says that Redis could not be asked or did not answer in time; the error from the
	// connection, if there was one, is wrapped beside it.
	ErrUnavailable = errors.New("holdfast: no answer from Redis")

	// ErrPermission says that Redis refuses the user: it wants a password, or another one, or the user has no right to a
	// command or key. Nothing was granted. The reply of the server (NOAUTH, WRONGPASS, NOPERM) is wrapped beside it.
	ErrPermission = errors.New("holdfast: Redis refuses the user")

	// ErrNotReplicated says that fewer replicas have acknowledged a grant or an extension than [WithReplicaAck] asks
	// for. It comes with [ErrUnavailable]. See [NotReplicatedError] for the numbers.
	ErrNotReplicated = errors.New("holdfast: not acknowledged by enough replicas")

	// ErrInProgress refuses a [Once] whose key another attempt is working on. See [InProgressError].
	ErrInProgress = errors.New("holdfast: in progress")

	// ErrCompleted refuses a second attempt. See [CompletedError], which has the record.
	ErrCompleted = errors.New("holdfast: completed before")

	// ErrOutcomeUnknown refuses an attempt after one of which nobody knows how it ended, with [HoldFailures] or after
	// [Attempt.Hold]. See [OutcomeUnknownError].
	ErrOutcomeUnknown = errors.New("holdfast: outcome of an earlier attempt unknown")

	// ErrFingerprintMismatch refuses an attempt whose [WithFingerprint] is not that of the record.
	ErrFingerprintMismatch = errors.New("holdfast: same key, other fingerprint")

	// ErrTooManyKeys refuses an attempt for a new key of a group that has as many records as [WithQuota] allows, or
	// whose records take as much memory as [WithQuotaBytes] allows. See [TooManyKeysError].
	ErrTooManyKeys = errors.New("holdfast: too many keys")

	// ErrOutsideWindow refuses an attempt that begins before or after its [WithWindow]. See [OutsideWindowError].
	ErrOutsideWindow = errors.New("holdfast: outside of the window")

	// ErrStale says that an attempt came too late to be recorded: its lease was over and another one has followed, or
	// [Once.Resolve] has told how it ended. It comes with [ErrLeaseLost].
	ErrStale = errors.New("holdfast: another attempt has followed")

	// ErrValueTooLarge says that a run was recorded as completed without its value, which [WithMaxValue] does not allow.
	ErrValueTooLarge = errors.New("holdfast: value too large")

	// ErrWrongType says that the key of the lock holds something else than a lock in Redis. Nothing was
	// overwritten. A hash cannot be told from a lock of Redisson: keep locks apart from data by their names.
	ErrWrongType = errors.New("holdfast: key holds another type")
)

// The ways to lose a lease.
var (
	errExpired     = fmt.Errorf("%w: its time ran out before a renewal succeeded", ErrLeaseLost)
	errRanOut      = fmt.Errorf("%w: its fixed time ran out", ErrLeaseLost)
	errGone        = fmt.Errorf("%w: not in Redis any more: forced out, deleted, evicted, or expired by its clock", ErrLeaseLost)
	errReplaced    = fmt.Errorf("%w: taken over by another owner in Redis", ErrLeaseLost)
	errTaken       = fmt.Errorf("%w: expired, forced or taken over in Redis", ErrLeaseLost) // not known which
	errHeldTooLong = fmt.Errorf("%w: held for the longest time allowed", ErrLeaseLost)
	errAbandoned   = fmt.Errorf("%w: given up by its holder", ErrLeaseLost)
)

// runsOut reports whether a lease that ended for this cause is left in Redis for the rest of its TTL: its holder is told
// to stop, and that is its time to do so. An Unlock within it says that the holder has stopped.
func runsOut(cause error) bool {
	return errors.Is(cause, errHeldTooLong) || errors.Is(cause, errAbandoned)
}

// NotAcquiredError is the [ErrNotAcquired] of one call.
type NotAcquiredError struct {
	// Name of the lock.
	Name string
	// RetryAfter is what the present holder's lease has left, by the server's clock when it was last asked.
	// A holder that renews may keep the lock longer; one that unlocks frees it sooner. Zero if unknown.
	RetryAfter time.Duration

	cause error // why the wait ended early, or did not begin; nil if the lock was simply held
}

// Error tells who was refused and why.
func (e *NotAcquiredError) Error() string {
	text := fmt.Sprintf("holdfast: lock %q not acquired", e.Name)
	if e.cause != nil {
		return text + ": " + bareText(e.cause)
	}
	if e.RetryAfter > 0 {
		return fmt.Sprintf("%s: held by another owner, whose lease ends in %v unless it is renewed", text, e.RetryAfter)
	}
	return text + ": held by another owner"
}

// Unwrap makes the error [ErrNotAcquired] and, if a context ended the wait, that context's error too, or
// [ErrTooManyWaiters] if there was no wait for that reason.
func (e *NotAcquiredError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNotAcquired}
	}
	return []error{ErrNotAcquired, e.cause}
}

// NotReplicatedError is the [ErrNotReplicated] of one command.
type NotReplicatedError struct {
	// Acknowledged is how many replicas did it in time.
	Acknowledged int
	// Wanted is how many [WithReplicaAck] asks for.
	Wanted int
}

// Error tells how many replicas acknowledged, and how many should have.
func (e *NotReplicatedError) Error() string {
	return fmt.Sprintf("acknowledged by %d of %d replicas", e.Acknowledged, e.Wanted)
}

// Unwrap makes the error [ErrNotReplicated].
func (e *NotReplicatedError) Unwrap() error { return ErrNotReplicated }

func invalidOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidOption, fmt.Sprintf(format, args...))
}
