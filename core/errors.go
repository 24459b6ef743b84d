package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// Errors of this package. Check them with errors.Is: the returned errors wrap them with more facts.
var (
	// ErrNotAcquired says that another owner holds the lock, or that the caller's context or its [WithWait] ended
	// before the grant. See [NotAcquiredError] for the facts. An outage alone is not ErrNotAcquired. A wait that ended
	// while Redis did not reply is both, so check for [ErrUnavailable] first.
	ErrNotAcquired = errors.New("holdfast: lock not acquired")

	// ErrTooManyWaiters says that as many callers wait for the name as [WithMaxWaiters] allows. It comes with
	// [ErrNotAcquired], or with [ErrInProgress] of a [Once].
	ErrTooManyWaiters = errors.New("holdfast: too many waiters")

	// ErrNotHeld is returned by Unlock and Extend of a lease that has ended: unlocked before, lost, or released by
	// [Client.Close]. It is also the cause with which the context of an unlocked lease ends.
	ErrNotHeld = errors.New("holdfast: lock not held")

	// ErrLeaseLost is the cause with which a lease's context ends if the lease ended without unlock. Its TTL expired
	// before a renewal succeeded, an operator forced it, another owner took it over, [WithMaxHold] passed, or its
	// holder called [Lease.Abandon]. The text of the error says which, as far as it is known.
	ErrLeaseLost = errors.New("holdfast: lease lost")

	// ErrUpgrade refuses a write lock to an owner that holds the read side or permits of a semaphore, more permits than
	// it has, and a [Redlock] to an owner that holds the name on its servers with another strategy: it would wait for itself.
	ErrUpgrade = errors.New("holdfast: lock cannot be upgraded: its owner would wait for itself")

	// ErrNoLeader says that no process leads the [Election] at this moment.
	ErrNoLeader = errors.New("holdfast: no leader")

	// ErrNotLeader says that this [Election] of this process does not lead.
	ErrNotLeader = errors.New("holdfast: not the leader")

	// ErrLeading refuses a campaign with the context of a leader of the same election, or of a lease of the lock with its
	// name: the candidate would wait for itself.
	ErrLeading = errors.New("holdfast: leading already")

	// ErrClosed is returned after [Client.Close], and is the cause with which Close ends leases.
	ErrClosed = errors.New("holdfast: client closed")

	// ErrInvalidName refuses a name, with the reason.
	ErrInvalidName = errors.New("holdfast: invalid name")

	// ErrInvalidOption refuses an option's value or a constructor's argument, with its name and the reason.
	ErrInvalidOption = errors.New("holdfast: invalid option")

	// ErrUnavailable says that Redis could not be asked, did not answer in time, or has answered that it cannot serve
	// the request now (LOADING, BUSY, NOREPLICAS, READONLY after a failover). It wraps the error of the connection or that
	// answer, if there was one, and its text names the answer. What waiting cannot fix is [ErrMisconfigured] or
	// [ErrPermission].
	ErrUnavailable = errors.New("holdfast: no answer from Redis")

	// ErrMisconfigured says that the Redis client or the server is set up in a way with which locks never work: the client
	// of one server leads to a Cluster (MOVED) or to a replica (READONLY), a TLS certificate is refused, or the server does
	// not have a command or the database. Its text says what to do. A call returns it at once, and the client logs a warning
	// for the first of each kind. Nothing was granted.
	ErrMisconfigured = transport.ErrMisconfigured

	// ErrPermission says that Redis refuses the user: the password is wrong or missing, or the user lacks a right to a
	// command or key. Nothing was granted. It wraps the reply of the server (NOAUTH, WRONGPASS, NOPERM).
	ErrPermission = errors.New("holdfast: Redis refuses the user")

	// ErrNotReplicated says that fewer replicas have acknowledged a grant or an extension than [WithReplicaAck] asks
	// for. It comes with [ErrUnavailable]. The text of the error has the numbers.
	ErrNotReplicated = errors.New("holdfast: not acknowledged by enough replicas")

	// ErrInProgress refuses a [Once] while another attempt for its key is in progress. See [InProgressError].
	ErrInProgress = errors.New("holdfast: in progress")

	// ErrCompleted refuses a second attempt. See [CompletedError], which has the record.
	ErrCompleted = errors.New("holdfast: completed before")

	// ErrOutcomeUnknown refuses an attempt after one with an unknown outcome, with [HoldFailures] or after
	// [Attempt.Hold]. See [OutcomeUnknownError].
	ErrOutcomeUnknown = errors.New("holdfast: outcome of an earlier attempt unknown")

	// ErrFingerprintMismatch refuses an attempt if its [WithFingerprint] differs from the fingerprint in the record.
	ErrFingerprintMismatch = errors.New("holdfast: same key, other fingerprint")

	// ErrTooManyKeys refuses an attempt for a new key of a group that is full: it has as many records as [WithQuota]
	// allows. See [TooManyKeysError].
	ErrTooManyKeys = errors.New("holdfast: too many keys")

	// ErrOutsideWindow refuses an attempt that begins before or after its [WithWindow]. See [OutsideWindowError].
	ErrOutsideWindow = errors.New("holdfast: outside of the window")

	// ErrNotGuarded says that [Complete], [Release] or [Hold] was called with a context that does not come from a run of a
	// [Once]: the code is behind no guard, or behind one that keeps no records.
	ErrNotGuarded = errors.New("holdfast: not in a run of a Once")

	// ErrStale says that an attempt ended too late to be recorded: its lease had expired and another attempt has
	// followed, or [Once.Resolve] has recorded the outcome. It comes with [ErrLeaseLost].
	ErrStale = errors.New("holdfast: another attempt has followed")

	// ErrChanged refuses an action of an operator if the record or the lock is not as the operator saw it any more. Nothing
	// was changed. Read it again, and decide anew.
	ErrChanged = errors.New("holdfast: it has changed since it was seen")

	// ErrValueTooLarge says that a run was recorded as completed without its value, which [WithMaxValue] does not allow.
	ErrValueTooLarge = errors.New("holdfast: value too large")

	// ErrWrongType says that there is data of another program at the key of the lock or record, or at a key beside it: its
	// queue, or the last token. That is a key of another type, a hash that is no lock of holdfast or Redisson, or no record, or a
	// number that no script writes, such as a score of inf. Nothing was overwritten. Use different names for locks and data.
	ErrWrongType = errors.New("holdfast: key holds another type")
)

// The ways to lose a lease.
var (
	errExpired     = fmt.Errorf("%w: its TTL expired before a renewal succeeded", ErrLeaseLost)
	errRanOut      = fmt.Errorf("%w: its fixed TTL expired", ErrLeaseLost)
	errGone        = fmt.Errorf("%w: not in Redis any more: deleted, evicted, or expired by its clock", ErrLeaseLost)
	errForced      = fmt.Errorf("%w: force-released", ErrLeaseLost)
	errReplaced    = fmt.Errorf("%w: taken over by another owner in Redis", ErrLeaseLost)
	errTaken       = fmt.Errorf("%w: expired, force-released or taken over in Redis", ErrLeaseLost) // not known which
	errHeldTooLong = fmt.Errorf("%w: held for longer than WithMaxHold allows", ErrLeaseLost)
	errAbandoned   = fmt.Errorf("%w: abandoned by its holder", ErrLeaseLost)
)

// leftToExpire reports whether a lease that ended for this cause is left in Redis for the rest of its TTL: its holder is notified
// to stop, and that is its time to do so. An Unlock within it says that the holder has stopped.
func leftToExpire(cause error) bool {
	return errors.Is(cause, errHeldTooLong) || errors.Is(cause, errAbandoned)
}

// NotAcquiredError is the [ErrNotAcquired] of one call.
type NotAcquiredError struct {
	// Name of the lock.
	Name string
	// RetryAfter is the rest of the present holder's lease, by the server's clock at the last answer. A holder that
	// renews may keep the lock longer; one that unlocks frees it sooner. Of a [Client.Semaphore] it is the rest of the permit that
	// ends first. Zero if unknown.
	RetryAfter time.Duration
	// Holder is the owner that held the lock at the last answer, or one of several; "" if unknown.
	Holder string
	// Instance identifies the holder's client, see [WithInstance]. It is "" if the client has none, as with Redisson, or
	// if it is still unknown: the first refusal by a client may come without. It is always "" if [WithOwner] has named the
	// holder.
	Instance string

	cause error // why the wait ended early, or did not begin; nil if the lock was simply held
}

// Error returns the name of the lock and the reason. If a holder is known, it adds what is known of the holder.
func (e *NotAcquiredError) Error() string {
	text := fmt.Sprintf("holdfast: lock %q not acquired", e.Name)
	if e.cause != nil {
		text += ": " + bareText(e.cause)
		if e.Holder == "" || errors.Is(e.cause, ErrUnavailable) { // what was known before an outage says little
			return text
		}
	}
	text += ": held by another owner"
	if e.Instance != "" {
		text += " of " + e.Instance
	}
	if e.RetryAfter > 0 {
		return fmt.Sprintf("%s, whose lease ends in %v unless it is renewed", text, e.RetryAfter)
	}
	return text
}

// with returns a copy of the error with another cause.
func (e *NotAcquiredError) with(cause error) *NotAcquiredError {
	other := *e
	other.cause = cause
	return &other
}

// Unwrap returns [ErrNotAcquired]. If a context ended the wait, Unwrap also returns that context's error. If there was
// no wait because of [WithMaxWaiters], it also returns [ErrTooManyWaiters].
func (e *NotAcquiredError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNotAcquired}
	}
	return []error{ErrNotAcquired, e.cause}
}

func invalidOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidOption, foreign.Line(fmt.Sprintf(format, args...), maxShownText))
}

// InProgressError is the [ErrInProgress] of one call.
type InProgressError struct {
	// Key of the Once.
	Key string
	// RetryAfter is the rest of the running attempt's lease, by the server's clock at the last answer. The lease may
	// be renewed, or the run may end sooner. Zero if unknown.
	RetryAfter time.Duration
	// Holder is the attempt that was running at the last answer, and Instance identifies its client, see [NotAcquiredError].
	Holder, Instance string

	cause error // why the wait ended early, or did not begin; nil if it was not that
}

// Error returns what is in progress and the rest of its lease.
func (e *InProgressError) Error() string {
	text := fmt.Sprintf("holdfast: once %q: another attempt is in progress", e.Key)
	if e.Instance != "" {
		text += " on " + e.Instance
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(", with a lease of %v", e.RetryAfter)
	}
	if e.cause != nil {
		text += ": " + bareText(e.cause)
	}
	return text
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
		text += ": " + foreign.Quote(e.Record.Reason, maxShownText)
	}
	return text
}

// Unwrap returns [ErrOutcomeUnknown].
func (e *OutcomeUnknownError) Unwrap() error { return ErrOutcomeUnknown }

// changedError is the [ErrChanged] of [Once.Forget], [Once.ForgetRunning] and [Once.Resolve].
type changedError struct {
	Record Record // as it is now; its State is [StateNone] if there is none any more
}

// Error returns the key and the present state.
func (e *changedError) Error() string {
	now := "there is none now"
	if e.Record.State != StateNone {
		now = fmt.Sprintf("it is %s now, of attempt %d", e.Record.State, e.Record.Attempt)
	}
	return fmt.Sprintf("holdfast: once %q: the record has changed since it was seen: %s; read it again", e.Record.Key, now)
}

// Unwrap returns [ErrChanged], and what the record is now: a [CompletedError] or an [InProgressError].
func (e *changedError) Unwrap() []error {
	switch e.Record.State {
	case StateCompleted:
		return []error{ErrChanged, &CompletedError{Record: e.Record}}
	case StateRunning:
		return []error{ErrChanged, &InProgressError{
			Key: e.Record.Key, RetryAfter: e.Record.Lease, Instance: e.Record.Instance,
		}}
	}
	return []error{ErrChanged}
}

// TooManyKeysError is the [ErrTooManyKeys] of one call.
type TooManyKeysError struct {
	// Key of the Once.
	Key string
	// RetryAfter is the time after which the first record of the group expires, by the server's clock. The group may
	// still be full then.
	RetryAfter time.Duration
}

// Error returns the key and the time after which to retry.
func (e *TooManyKeysError) Error() string {
	return fmt.Sprintf("holdfast: once %q: its group has no room for another record for %v", e.Key, e.RetryAfter)
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
func onceError(key string, r *script.Refusal) error {
	switch r.Kind {
	case script.Completed:
		return &CompletedError{Record: newRecord(key, r.Record)}
	case script.OutcomeUnknown:
		return &OutcomeUnknownError{Record: newRecord(key, r.Record)}
	case script.Changed:
		return &changedError{Record: newRecord(key, r.Record)}
	case script.InProgress:
		return &InProgressError{Key: key, RetryAfter: r.RetryAfter}
	case script.TooManyRecords:
		return &TooManyKeysError{Key: key, RetryAfter: r.RetryAfter}
	case script.TooEarly, script.TooLate:
		return &OutsideWindowError{Key: key, Early: r.Kind == script.TooEarly, ServerTime: r.ServerTime}
	}
	return fmt.Errorf("%w: once %q", ErrFingerprintMismatch, key)
}

// failure returns the error of the API for the error of a command. It has the key that it is about. It is [ErrUnavailable] if
// waiting may help, together with the end of ctx if that came first.
func failure(ctx context.Context, key string, err error) error {
	if err = publicAck(err); err == nil {
		return nil
	}
	if transport.Transient(err) {
		return unavailable(err, ctx.Err())
	}
	return refusal(key, err)
}

// trouble is failure for a call whose time is up, and ended is why; nil if it is not. err is nil if nothing is known.
func trouble(key string, err, ended error) error {
	switch {
	case err == nil || transport.Transient(err):
		return unavailable(err, ended)
	case ended == nil:
		return refusal(key, err)
	}
	return errorf("%w: %w", refusal(key, err), ended)
}

// refusal returns the error of the API for an error that is no outage.
func refusal(key string, err error) error {
	switch {
	case transport.WrongType(err):
		// The server does not say which of the script's keys it was.
		return errorf("%w: %q, or a key beside it as holdfast:token, has data of another program: %w", ErrWrongType, key, err)
	case transport.WantsPassword(err):
		return errorf("%w: NOAUTH, it wants a password: %w", ErrPermission, err)
	case transport.RefusesUser(err):
		return errorf("%w: %w", ErrPermission, err)
	case errors.Is(err, ErrMisconfigured):
		return errorf("%w: %w", ErrMisconfigured, err)
	}
	if advice := transport.Advice(err); advice != "" {
		return errorf("%w: %s: %w", ErrMisconfigured, advice, err)
	}
	return err
}

// errCannotServe is [ErrUnavailable] with another text, for a server that has answered.
var errCannotServe = &wrapError{text: errorPrefix + "Redis cannot serve this now", err: ErrUnavailable}

// errTooManyFiles is [ErrUnavailable] with another text, for a connection that this process, not Redis, could not have.
var errTooManyFiles = &wrapError{text: errorPrefix + "this process or its host has too many open files (raise ulimit -n)", err: ErrUnavailable}

// unavailable returns the [ErrUnavailable] of a request that has failed with err: the reply of the server, such as LOADING,
// or what has kept the server from a reply. err is nil if neither is known. ended is why the caller's time is up, nil if it
// is not.
func unavailable(err, ended error) error {
	outage := ErrUnavailable
	if err = publicAck(err); errors.Is(err, ErrNotReplicated) || err != nil && transport.Replied(err) {
		outage = errCannotServe
	}
	switch {
	case err == nil:
		return outage
	case transport.TooManyFiles(err):
		outage = errTooManyFiles
	}
	if ended == nil {
		return errorf("%w: %w", outage, err)
	}
	return errorf("%w: %w: %w", outage, err, ended)
}

// maxShownText bounds a text of others within the text of an error, in bytes.
const maxShownText = 4096

// errorPrefix begins every error of this package.
const errorPrefix = "holdfast: "

// errorf is [fmt.Errorf] for errors that wrap others of this package: the prefix stands once, in front, and the text is
// one line.
func errorf(format string, args ...any) error {
	wrapped := fmt.Errorf(format, args...)
	texts := slices.Clone(args)
	for i, arg := range args {
		if err, ok := arg.(error); ok && (i > 0 || !strings.HasPrefix(format, "%w")) {
			texts[i] = bareText(err)
		}
	}
	e := &wrapError{text: fmt.Sprintf(strings.ReplaceAll(format, "%w", "%v"), texts...), err: wrapped}
	if inner := errors.Unwrap(wrapped); inner != nil {
		e.err = inner
	}
	return e
}

// bareText returns the text of an error without prefixes; the texts of several are separated by semicolons.
func bareText(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, errorPrefix)
	}
	return foreign.Line(strings.Join(lines, "; "), maxShownText) // also of an error of the caller, such as the cause of its context
}

// wrapError is what errorf returns.
type wrapError struct {
	text string
	err  error // the error that is wrapped, or one that wraps all of them
}

func (e *wrapError) Error() string { return e.text }
func (e *wrapError) Unwrap() error { return e.err }
