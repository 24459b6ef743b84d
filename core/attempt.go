package core

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Attempt is one run of a [Once] in progress. The client renews it until it is completed, released, held or abandoned.
// Exactly one call can end it. Its methods may be called from several goroutines at once. A nil Attempt
// has ended: its methods return [ErrNotHeld], and zero values.
type Attempt struct {
	handle
	once     *Once
	lease    *Lease
	number   int
	began    time.Time
	declared atomic.Int64 // number of the last declaration
	ended    atomic.Bool
	word     seal.Word     // what its run has declared
	proving  *seal.Proving // nil without a proof
	ending   script.End    // once ended is true
	endHold  *script.Hold  // of ending; see end
}

// attemptFacts gives guards the facts of an attempt.
type attemptFacts struct{ *Attempt }

// Facts implements [seal.Source].
func (a attemptFacts) Facts() seal.Facts {
	e := a.once.client.engine
	return seal.Facts{Logger: e.logger, Hooks: &e.hooks, Attempt: a}
}

// Began implements [seal.Attempt].
func (a attemptFacts) Began() time.Time { return a.began }

// Proving implements [seal.Attempt].
func (a attemptFacts) Proving() *seal.Proving { return a.proving }

// Bind implements [seal.Lease].
func (a attemptFacts) Bind(ctx context.Context) (bound context.Context, cancel context.CancelFunc) {
	bound, end, unbind := a.lease.end.Within(seal.WithRun(a.lease.within(ctx), attemptRun{a.Attempt}), keptLease{a.lease})
	return bound, func() { unbind(); end(nil) }
}

// Withdraw implements [seal.Attempt].
func (a attemptFacts) Withdraw(ctx context.Context) error {
	return a.discard(ctx, OutcomeWithdrawn, script.NeverHeld)
}

// Context returns a context that carries the fencing token and ends with the attempt, with the cause [ErrLeaseLost] if
// its lease was lost. It has the values of the context given to Begin, but not its end.
func (a *Attempt) Context() context.Context {
	if a == nil {
		return noLease
	}
	return seal.WithRun(a.lease.Context(), attemptRun{a})
}

// Token returns the fencing token: greater than the token of every earlier attempt for this key, and of every earlier grant
// of a lock of that name; never 0.
func (a *Attempt) Token() int64 {
	if a == nil {
		return 0
	}
	return a.lease.token
}

// Number returns the number of the attempt, from 1. It is greater than 1 if earlier attempts failed or crashed, as
// long as the record exists. With [WithQuota] a first attempt that was released leaves no record.
func (a *Attempt) Number() int {
	if a == nil {
		return 0
	}
	return a.number
}

// ValidUntil returns the time until which no other attempt can begin, see [Lease.ValidUntil].
func (a *Attempt) ValidUntil() time.Time {
	if a == nil {
		return time.Time{}
	}
	return a.lease.ValidUntil()
}

// Complete records that the run took effect, with a value for later callers; nil is recorded as an empty value. From
// then on [Once.Begin] returns [ErrCompleted], until the record expires.
//
// Complete works although ctx was cancelled, and although the lease was lost. It returns [ErrStale] if a later attempt is
// running or has ended with an outcome, or after [Once.Resolve]. If the value is too large, it returns [ErrValueTooLarge]
// and records the run without the value. It returns [ErrNotHeld] if the attempt had already ended. Any other error means
// that Redis did not confirm the record; the client retries in the background, for ten minutes beyond the TTL, or for the retention
// if that is shorter, and until [Client.Close]. Until then, the same client begins no other attempt for the key. If Redis is unreachable
// for longer, the next attempt may run what was done: see [HoldFailures] and [WithProof]. If it meets a running attempt there, it
// continues, and records the run if that attempt is released or crashes.
func (a *Attempt) Complete(ctx context.Context, value []byte) error {
	if a == nil {
		return errNoLease
	}
	err := a.end(ctx, OutcomeCompleted, func(ctx context.Context) (int64, error) {
		return a.once.backend().Complete(ctx, a.endHold, a.lease.token, a.number, value)
	})
	if err != nil {
		return err
	}
	return a.once.checkValue(value)
}

// Release ends an attempt that has done nothing: the next one may begin at once. It returns the same errors as Complete. After
// [ErrStale] there was nothing to release.
func (a *Attempt) Release(ctx context.Context) error {
	return a.discard(ctx, OutcomeReleased, script.HeldByCaller)
}

// Hold ends an attempt with an unknown outcome. All later callers get [ErrOutcomeUnknown] until an operator has found
// out and calls [Once.Resolve] or [Once.Forget], or until the record expires. The reason is for the operator: keep
// users' data out of it. At most 1,024 bytes of it are recorded. It returns the same errors as Complete.
func (a *Attempt) Hold(ctx context.Context, reason string) error {
	if a == nil {
		return errNoLease
	}
	reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
	return a.end(ctx, OutcomeHeld, func(ctx context.Context) (int64, error) {
		return a.once.backend().Hold(ctx, a.endHold, a.lease.token, a.number, reason)
	})
}

// Declare sets what the attempt counts as if the process crashes or becomes unreachable, in place of the failure
// policy:
//
//   - [StateCompleted], right after the work has taken effect: a crash before Complete then does not repeat it.
//   - [StateUnknown], right before work whose outcome a crash would leave open.
//   - [StateNone], while everything so far may be repeated.
//
// Declare does not end the attempt. Of two declarations the one of the later call stays, whichever reaches Redis last.
//
// Declare returns [ErrStale] and [ErrNotHeld] as Complete does, and ErrStale even if Redis has lost the record. Any other
// error means that Redis did not confirm the declaration, which may count or not. Unlike Complete, the client does not send
// it again in the background: call Declare again, or do not rely on it.
func (a *Attempt) Declare(ctx context.Context, state State) error {
	if a == nil {
		return errNoLease
	}
	outcome, ok := map[State]string{
		StateCompleted: script.ExpiryMeansCompleted, StateUnknown: script.ExpiryMeansUnknown, StateNone: script.ExpiryAllowsRetry,
	}[state]
	if !ok {
		return fmt.Errorf("holdfast: once %q: an attempt cannot be declared %q", a.once.key, state)
	}
	if a.ended.Load() {
		return a.notHeld()
	}
	e, number, held := a.once.client.engine, a.declared.Add(1), false
	err := e.operate(ctx, "declare once", a.once.key, a.once.keys, func() error {
		return e.acquiring.RunDetached(ctx, func(ctx context.Context) (err error) {
			held, err = a.once.backend().SetOutcomeOnExpiry(ctx, &a.lease.hold, number, outcome)
			return err
		})
	})
	switch {
	case err != nil || held:
		return err
	case a.ended.Load(): // meanwhile
		return a.notHeld()
	}
	return a.stale()
}

// Abandon stops renewal without ending the attempt. Its context ends with [ErrLeaseLost]. Others get [ErrInProgress]
// until the lease expires, or for one more TTL if a renewal is in flight. Then the failure policy or [Attempt.Declare]
// decides, as after a crash. Use Abandon for a handler that ignores cancellation: others stay excluded while it may
// still run, but not forever.
//
// Complete, Release, Hold and Declare still work as long as no other attempt has followed; Complete and Hold even after one
// that took no effect. Abandon does no I/O. It
// does not change an attempt that has ended.
func (a *Attempt) Abandon() {
	if a != nil {
		a.lease.Abandon()
	}
}

// maxReason bounds what is recorded of a reason, in bytes.
const maxReason = 1024

// discard ends the attempt without an outcome in its record.
func (a *Attempt) discard(ctx context.Context, outcome Outcome, what script.ReleaseReason) error {
	if a == nil {
		return errNoLease
	}
	return a.end(ctx, outcome, func(ctx context.Context) (int64, error) {
		held, err := a.once.backend().Discard(ctx, a.endHold, what)
		if !held {
			return script.Stale, err
		}
		return script.Recorded, err
	})
}

// end stops the renewal and sends the script that ends the attempt, detached from ctx and bounded. What it could not
// confirm is finished in the background.
func (a *Attempt) end(ctx context.Context, outcome Outcome, command func(context.Context) (int64, error)) error {
	e := a.once.client.engine
	if !e.operations.StartInternal() {
		return errorf("holdfast: end of once %q not recorded: %w", a.once.key, ErrClosed)
	}
	defer e.operations.Finish()
	if !a.ended.CompareAndSwap(false, true) {
		return a.notHeld()
	}
	live := e.renewer.Remove(&a.lease.entry)
	if live {
		a.endHold = &a.lease.hold
		a.lease.end.Set(ErrNotHeld)
	} else {
		// A copy: the end counts its repeated requests in the hold, while the renewer may be reading the hold of the lost lease.
		h := a.lease.hold
		a.endHold = &h
	}
	var result int64
	a.once.backend().Unconfirmed.Add(&a.ending, a.endHold, a.lease.token, command)
	err := e.acquiring.RunDetached(ctx, func(ctx context.Context) (err error) {
		result, err = a.ending.Send(ctx)
		return err
	})
	switch {
	case errors.Is(err, transport.ErrNotYet):
		a.ending.GiveUp() // the error of the caller stays true, whatever becomes of the other attempt
		err = a.stale()
	case err != nil:
		// However late the end is sent, no other attempt's end is touched.
		a.ending.SendLater(a.once.backend().Pending(a.endHold), e.now().Add(a.patience()), a.notRecorded)
		err = errorf("holdfast: end of once %q not confirmed: %w", a.once.key,
			failure(ctx, a.once.keys.Lock, err))
	case result == script.Stale:
		err = a.stale()
	}
	a.ends(ctx, outcome, AttemptEnd{Recreated: result == script.Recreated, LeaseLost: !live, Err: err})
	return err
}

// notRecorded logs an end that was answered or given up in the background, unless it was recorded.
func (a *Attempt) notRecorded(result int64, err error) {
	if errors.Is(err, transport.ErrNotYet) || err == nil && result == script.Stale {
		err = ErrStale
	}
	if err != nil {
		a.once.client.engine.logger.Warn("holdfast: the completion of an attempt could not be recorded",
			"once", digest(a.once.keys.Lock), "attempt", a.number, "error", err)
	}
}

// patience is how long the completion of an attempt is tried to be recorded: as long as it may be of use, and as Redis remembers a
// record that was forgotten meanwhile, which a later completion would bring back.
func (a *Attempt) patience() time.Duration {
	return a.lease.hold.TTL + min(a.once.config.record.Retention, acquire.BackgroundReleaseLimit)
}

func (a *Attempt) stale() error {
	return errorf("%w: once %q, attempt %d: %w", ErrStale, a.once.key, a.number, ErrLeaseLost)
}

func (a *Attempt) notHeld() error {
	return errorf("%w: once %q, attempt %d has ended", ErrNotHeld, a.once.key, a.number)
}

// replayed is the result of a run that has found the effect of an earlier one: the result of the earlier run, unless fn
// has made one of its own from it.
func replayed(value []byte, err, found error) Result {
	var done *CompletedError
	errors.As(found, &done)
	if err != nil {
		value = done.Record.Value
	}
	return Result{Value: value, Replayed: true, Attempt: done.Record.Attempt}
}

// run calls fn and ends the attempt, however fn ends.
func (a *Attempt) run(ctx context.Context, fn func(context.Context) ([]byte, error)) (Result, error) {
	running, cancel := attemptFacts{a}.Bind(ctx)
	returned := false
	defer func() {
		cancel()
		if !returned {
			_ = a.conclude(ctx, nil, "panic or Goexit")
		}
	}()
	value, err := fn(running)
	returned = true
	if _, same, found := a.proving.Committed(); found != nil && !same {
		return Result{}, found
	} else if found != nil {
		return replayed(value, err, found), nil
	}
	if err == nil {
		a.warnUnproven()
		err = a.conclude(ctx, value, "")
		if d, _ := a.word.Said(); d == seal.Held {
			err = errors.Join(errorf("%w: once %q", ErrOutcomeUnknown, a.once.key), err)
		}
		return Result{Value: value, Attempt: a.number}, err
	}
	lost := a.lease.end.Cause() // before its end gives it one
	// What cannot be confirmed is logged when it was given up, and the policy holds all the same once the lease is over.
	_ = a.conclude(ctx, value, "error")
	if lost != nil && !errors.Is(err, lost) {
		err = errors.Join(err, lost)
	}
	return Result{Attempt: a.number}, err
}

// Complete says that the run of a [Once] has taken effect: it is recorded as completed even if it fails from here on. Call it
// right after the side effect. ctx is the context of the run, or descends from it, whichever guard began the run: [Once.Do], or
// one for HTTP, tasks or schedules. If runs are nested, it is about the innermost one. Complete writes to Redis at once, so
// that even a crash of the process does not undo it, but the run continues and records its value when it ends.
//
// Of several calls of Complete, [Release] and [Hold] in one run the last counts, except that a Release after Complete is refused.
// Any other error means that Redis did not confirm the call; it counts all the same when the run ends. It returns the errors of
// [Attempt.Declare], or [ErrNotGuarded].
func Complete(ctx context.Context) error { return declare(ctx, seal.Completed, "") }

// Release says that the run has done nothing: the next one may run when this one has ended, however that is, and whatever the
// failure policy. See [Complete].
//
// After Complete in the same run, Release is refused with [ErrCompleted] and changes nothing, because the run has taken effect. It is
// refused with [ErrOutcomeUnknown] if the store of a [Proof] has found that nobody knows what the run has done.
func Release(ctx context.Context) error {
	if seal.ProvingFrom(ctx).InDoubt() {
		return errorf("%w: not released: the transaction of its proof was over before its commit", ErrOutcomeUnknown)
	}
	return declare(ctx, seal.Released, "")
}

// Hold declares the outcome of the run unknown: when it has ended, its record is kept for an operator, and all
// later callers get [ErrOutcomeUnknown], even if the run has called [Complete] before. The reason is for the operator, see
// [Attempt.Hold].
func Hold(ctx context.Context, reason string) error { return declare(ctx, seal.Held, reason) }

func declare(ctx context.Context, d seal.Disposition, reason string) error {
	r := seal.RunFrom(ctx)
	if r == nil {
		return ErrNotGuarded
	}
	if !r.Word().Set(d, reason) {
		return errorf("%w: not released: the run has called Complete", ErrCompleted)
	}
	return r.Declare(ctx, d)
}

// AttemptFrom returns the attempt of the innermost run of a [Once] that ctx is the context of, or descends from. It returns
// false if there is none, or if a guard lets the run pass without a record. The guard ends the attempt: see [Complete] to say
// what becomes of it.
func AttemptFrom(ctx context.Context) (*Attempt, bool) {
	r := seal.RunFrom(ctx)
	if r == nil {
		return nil, false
	}
	a, _ := r.Attempt().(*Attempt)
	return a, a != nil
}

// KeyHash returns a hash of the key of the innermost run of a [Once] that ctx is the context of, or descends from, and "" if
// there is none. It is the same for every attempt of a key. Use it as the idempotency key of a request to another service, such
// as a payment.
//
// It differs between clients with other prefixes, see [WithPrefix], because these have other records. Behind a guard it is the
// KeyHash of [Work], which does not depend on the prefix: if several environments share an account of the other service, give the
// guards of each a key secret of its own, or put the prefix in front of the hash.
func KeyHash(ctx context.Context) string {
	r := seal.RunFrom(ctx)
	if r == nil {
		return ""
	}
	return r.KeyHash()
}

// attemptRun is the attempt that its contexts carry.
type attemptRun struct{ attempt *Attempt }

// Attempt implements [seal.Run].
func (r attemptRun) Attempt() any { return r.attempt }

// KeyHash implements [seal.Run].
func (r attemptRun) KeyHash() string {
	sum := sha256.Sum256([]byte(r.attempt.once.proofKey()))
	return hex.EncodeToString(sum[:])
}

// Word implements [seal.Run].
func (r attemptRun) Word() *seal.Word { return &r.attempt.word }

// Declare implements [seal.Run].
func (r attemptRun) Declare(ctx context.Context, d seal.Disposition) error {
	return r.attempt.Declare(ctx, map[seal.Disposition]State{
		seal.Completed: StateCompleted, seal.Released: StateNone, seal.Held: StateUnknown,
	}[d])
}

// Proving implements [seal.Run].
func (r attemptRun) Proving() *seal.Proving { return r.attempt.proving }

// conclude ends the attempt as its run has said, or else by how the run has ended. failure is empty after a success.
func (a *Attempt) conclude(ctx context.Context, value []byte, failure string) error {
	d, reason := a.word.Said()
	if committed, ok, _ := a.proving.Committed(); ok && d != seal.Held && (failure != "" || d == seal.Released) {
		d, value = seal.Completed, a.once.convert(committed) // the key does not run again, whatever came after the commit
	}
	switch {
	case d == seal.Completed, d == seal.Undecided && failure == "":
		return a.Complete(ctx, value)
	case d == seal.Released, d == seal.Undecided && !a.once.config.record.HoldFailures:
		return a.Release(ctx)
	}
	return a.Hold(ctx, cmp.Or(reason, failure))
}
