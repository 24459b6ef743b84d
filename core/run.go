package core

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/holdfast-go/holdfast/internal/seal"
)

// Complete says that the run of a [Once] has taken effect: it is recorded as completed even if it fails from here on. Call it
// right after the side effect. ctx is the context of the run, or descends from it, whichever guard began the run: [Once.Do], or
// one for HTTP, tasks or schedules. If runs are nested, it is about the innermost one. Complete writes to Redis at once, so
// that even a crash of the process does not undo it, but the run goes on and records its value when it ends.
//
// Of several calls of Complete, [Release] and [Hold] in one run the last counts. An error means that Redis did not confirm the
// call; it counts all the same when the run ends. Errors are those of [Attempt.Declare], or [ErrNotGuarded].
func Complete(ctx context.Context) error { return declare(ctx, seal.Completed, "") }

// Release says that the run has done nothing: the next one may run when this one has ended, however that is, and whatever the
// failure policy. See [Complete].
func Release(ctx context.Context) error { return declare(ctx, seal.Released, "") }

// Hold says that nobody knows whether the run has taken effect: when it has ended, its record is kept for an operator, and all
// later callers get [ErrOutcomeUnknown]. The reason is for the operator, see [Attempt.Hold]. See also [Complete].
func Hold(ctx context.Context, reason string) error { return declare(ctx, seal.Held, reason) }

func declare(ctx context.Context, d seal.Disposition, reason string) error {
	r := seal.RunFrom(ctx)
	if r == nil {
		return ErrNotGuarded
	}
	return r.Declare(ctx, d, reason)
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
func KeyHash(ctx context.Context) string {
	r := seal.RunFrom(ctx)
	if r == nil {
		return ""
	}
	return r.KeyHash()
}

// attemptRun is an attempt as its contexts know it.
type attemptRun struct{ attempt *Attempt }

// Attempt implements [seal.Run].
func (r attemptRun) Attempt() any { return r.attempt }

// KeyHash implements [seal.Run].
func (r attemptRun) KeyHash() string {
	sum := sha256.Sum256([]byte(r.attempt.once.key))
	return hex.EncodeToString(sum[:])
}

// Declare implements [seal.Run].
func (r attemptRun) Declare(ctx context.Context, d seal.Disposition, reason string) error {
	r.attempt.word.Set(d, reason)
	return r.attempt.Declare(ctx, map[seal.Disposition]State{
		seal.Completed: StateCompleted, seal.Released: StateNone, seal.Held: StateUnknown,
	}[d])
}

// Proving implements [seal.Run].
func (r attemptRun) Proving() *seal.Proving { return r.attempt.proving }

// Said implements [seal.Run].
func (r attemptRun) Said() (seal.Disposition, string) { return r.attempt.word.Said() }

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
