package guard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Guard is an [Exclusive] or a [Once], for a place that can have either.
type Guard interface {
	Do(ctx context.Context, ask Ask, run Run) (*Outcome, error)
	Known(ctx context.Context, ask Ask, unavailable error) error
	Patience(ask Ask, wait time.Duration) Patience
	Incident(ctx context.Context, i core.Incident)
	Event(ctx context.Context, level slog.Level, kind, text string, w core.Work, err error, more ...slog.Attr)
}

// Ask is what is asked of a guard for one work item: a request, a task, a tick. It is data only; what the place does with the
// item is a [Run].
type Ask struct {
	// Work describes the item to hooks and logs. Its Place is set by the guard. Keep users' data out of Label, and make
	// KeyHash with the secret of [WithKeySecret].
	core.Work
	// Name is the name of the lock, or the key of the record, in Redis. Items exclude each other if their names are equal.
	Name string
	// NoKey is why the item has no key; nil if it has one. Then Name and KeyHash are not used, and the guard does not log the
	// refusal: only the place knows whose fault it is, and what of the error may be logged. See [Log.Event].
	NoKey error
	// KeyFailed says that the item may well have a key, although there is none to guard it by: its key function has failed, or
	// the key is malformed. Such an item does not run, whatever [OptionalKey] says.
	KeyFailed bool

	// Fingerprint is compared with the record's; nil compares nothing. See [core.WithFingerprint].
	Fingerprint []byte
	// Note is for the record, see [core.WithNote].
	Note string
	// Retention replaces the guard's, if it is not 0.
	Retention time.Duration
	// Lock and Once are further options of this item's lock or record.
	Lock []core.LockOption
	Once []core.OnceOption

	// By is when the caller needs its answer. Before it, a second is kept free of waiting, and half of the time that is left
	// at the end of a run may be spent on recording. Zero means that there is no such time.
	By time.Time
	// Detached is which ends of the item's context do not end the run. The lease ends it in any case.
	Detached Detachment
	// Turn decides when Redis is asked, and for how long the item waits. It calls ask once or several times, and returns the
	// error of the last call, or its own reason why the item does not run. ask with a wait below 1 ms asks once. After ask has
	// returned nil, Turn must return nil. If Turn is nil, the guard asks as Patience does, for the wait of its config.
	Turn func(ctx context.Context, ask func(ctx context.Context, wait time.Duration) error) error
}

// Detachment is which ends of the item's context do not end a run.
type Detachment int

// The kinds of Detachment.
const (
	Attached       Detachment = iota // the item's context ends the run
	FromClient                       // its deadline ends the run, a cancellation does not
	FromAnyContext                   // neither does
)

// Label returns as much of a text as fits into the Label of [core.Work].
func Label(text string) string {
	const most = 256 // of core.WithLabel
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// Run is what a place does with a work item. Only Call is required.
//
// All functions are called on the goroutine of Do, except Overrun.
type Run struct {
	// Call runs the item's function. It keeps what the function returned, for Judge. A panic or [runtime.Goexit] continues
	// after the end is recorded.
	Call func(ctx context.Context)
	// Pass replaces Call for an item that runs without this guard: it has no key and need not have one, or is inside a run
	// of its key already. Judge is not called then.
	Pass func(ctx context.Context)
	// Around is called when Redis has granted the item, and calls next once it has what else the item needs: another lock, the
	// lead, a deadline. The context of next descends from ctx. If Around returns without a call of next, its error is the
	// reason why the item does not run. Then the grant is withdrawn, unless Around has set another Verdict. What it returns
	// after next does not matter.
	Around func(ctx context.Context, o *Outcome, next func(ctx context.Context)) error
	// Judge judges how Call ended, see [Outcome]. If it is nil, a run that returned is completed. If Judge panics, what it has
	// set until then counts.
	Judge func(o *Outcome)
	// Replay returns the result of an earlier run that has completed. With [core.WithProof] it may be called after Call: the
	// transaction of that run has found the effect of an earlier one, and what Call has kept does not count. An Exclusive never calls it. It returns nil if the caller has that now, and otherwise
	// why the item is refused, for instance a [core.CompletedError] of the record. If it is nil, the item is refused.
	Replay func(ctx context.Context, r core.Record) error
	// Refuse answers an item that does not run. Reason is set already, see [ReasonBusy] and the others. RetryAfter is when the run in
	// the way may have ended, by its lease, and 0 in an outage. Refuse may replace both, and Err, which Do returns.
	Refuse func(ctx context.Context, not *core.NotRun)
	// Overrun is called on a goroutine of its own when the run is an overrun, before its lease is abandoned. It may end
	// the attempt.
	Overrun func(ctx context.Context)
}

// Outcome is what has happened to a work item that ran.
type Outcome struct {
	// Set by the guard before Call. Token and Attempt are 0 without Redis, and Attempt without a record.
	Token     int64
	Attempt   int
	Unguarded error // why the run began without Redis, see [FailOpen]; nil if it did not

	// Set by the guard before Judge. Returned is false after a panic or [runtime.Goexit].
	Returned bool
	Took     time.Duration

	// Set by Judge. The zero Verdict is Failed. What the function has said by [core.Complete], [core.Release] or [core.Hold]
	// outweighs it.
	Verdict Verdict
	// Value returns what is recorded of a completed run; nil records no value. It is called only if that is recorded.
	// After an error, or a panic, the run is recorded without value.
	Value func() ([]byte, error)
	// Reason is for the operator if the outcome is unknown. Keep users' data out of it.
	Reason string
	// NoEffect is true for a completed run that has answered that it does nothing. Others are expected to have a transaction if the
	// guard has core.WithProof.
	NoEffect bool
	// Err is why the run failed, for hooks; nil if it succeeded.
	Err error

	// Set by the guard after the end. State is what was to be recorded: [core.StateNone] without a record.
	State core.State
	// Lost is why the lease ended before the run did; nil if it did not. Judge sets it if that was a lease of Around.
	Lost error
	// Unrecorded is why Redis has not confirmed the end. It is [core.ErrStale] if a later run counts instead. Other ends are
	// retried in the background.
	Unrecorded error
}

// Verdict is what becomes of the record of a run.
type Verdict int

const (
	// Failed leaves it to the failure policy: the run may have taken effect or not.
	Failed Verdict = iota
	// Completed: the run took effect and never runs again.
	Completed
	// Released: nothing happened, the next run may begin.
	Released
	// Held: the outcome is unknown, and nothing runs until an operator has found out.
	Held
	// Withdrawn: nothing has begun, and the number of the attempt is used again.
	Withdrawn
)

// State returns what is recorded, if the failure policy does not decide.
func (v Verdict) State() core.State {
	switch v {
	case Completed:
		return core.StateCompleted
	case Held:
		return core.StateUnknown
	}
	return core.StateNone
}

// Digest returns the SHA-256 of a list of texts, or their HMAC-SHA-256 if there is a secret, for instance of [WithKeySecret]. No two
// lists have the same digest, as far as is known: the length stands in front of each text, so that no text can pass for the end of
// one and the beginning of another. It is for fingerprints.
func Digest(secret []byte, texts ...string) [sha256.Size]byte {
	size := 0
	for _, text := range texts {
		size += 8 + len(text)
	}
	joined := slices.Grow(make([]byte, 0, 512), size) // most keys stay on the stack
	for _, text := range texts {
		joined = binary.BigEndian.AppendUint64(joined, uint64(len(text)))
		joined = append(joined, text...)
	}
	if len(secret) == 0 {
		return sha256.Sum256(joined)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(bytes.Clone(joined)) // the interface would move it to the heap without a secret, too
	return [sha256.Size]byte(mac.Sum(nil))
}

// Hash returns the [Digest] as 43 characters of base64url, for the KeyHash of [core.Work] and the names of locks and records.
// Operators find names by it.
func Hash(secret []byte, texts ...string) string {
	sum := Digest(secret, texts...)
	var hash [43]byte
	base64.RawURLEncoding.Encode(hash[:], sum[:])
	return string(hash[:])
}

// KeyFuncs returns a copy of the key functions of a place, which the caller may change afterwards. It panics if there are none, or one
// is nil. The name is the caller's, for the panic.
func KeyFuncs[F any](name string, fns []F) []F {
	if len(fns) == 0 {
		panic("holdfast: " + name + ": no key functions")
	}
	for i, fn := range fns {
		if IsNil(fn) {
			panic(fmt.Sprintf("holdfast: %s: key function %d is nil", name, i+1))
		}
	}
	return slices.Clone(fns)
}

// AllKeys returns the keys that the functions make of a work item, or the first error.
func AllKeys[W, K any, F ~func(W) (K, error)](of W, fns []F) ([]K, error) {
	keys := make([]K, len(fns))
	for i, fn := range fns {
		key, err := fn(of)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return keys, nil
}

// FirstKey returns the key of the first function that finds one. A zero key counts as the error missing. It tries the next function
// only after an error that is absent. If all fail so, it returns the error of the first.
func FirstKey[W any, K interface{ IsZero() bool }, F ~func(W) (K, error)](of W, fns []F, absent func(error) bool, missing error) (K, error) {
	var none K
	var first error
	for _, fn := range fns {
		key, err := fn(of)
		switch {
		case err == nil && !key.IsZero():
			return key, nil
		case err == nil:
			err = missing
		case !absent(err):
			return none, err
		}
		first = cmp.Or(first, err)
	}
	return none, first
}

// OnlyValue returns the value of a header field, or of a name in metadata, from the values that a client has sent; "" if it has sent
// none. fault is what is wrong with them, as what is said of the field: there are several, of which the guard and the handler might not
// mean the same one, or the only one is empty, although its client means to send a key.
func OnlyValue(values []string) (value, fault string) {
	switch {
	case len(values) > 1:
		return "", fmt.Sprintf("is there %d times", len(values))
	case len(values) == 1 && values[0] == "":
		return "", "is empty"
	case len(values) == 0:
		return "", ""
	}
	return values[0], ""
}
