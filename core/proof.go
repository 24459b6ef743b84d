package core

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Proof is where a run commits its effect together with the fact that it did so: a database, for instance through package
// sqllock. [WithProof] asks it whether an earlier run of a key has taken effect.
type Proof interface {
	// Committed returns what a run has committed for a key, and nil if no run has. The key is the key of the [Once], with the prefix
	// of its client in front. An error means that this is not known. Then nothing runs. Committed must return soon after ctx has
	// ended, which it also does when the client closes: [Client.Close] waits for it.
	Committed(ctx context.Context, key string) (*Committed, error)
	// Resolve notes that an operator has found the effect of a key, or has made it by hand, as if a run had committed that. The error is
	// [ErrCompleted] if a run has, also one that was about to.
	Resolve(ctx context.Context, key string, found Committed) error
	// OnlyEffect reports whether what is committed with the proof is all that a run does. Then a run without a proof has done
	// nothing, and the next one may follow whatever the failure policy.
	OnlyEffect() bool
}

// Committed is what a [Proof] has of a key.
type Committed struct {
	// Value was committed with the effect: the result of the run, for later callers.
	Value []byte
	// Fingerprint is the fingerprint of the run, see [WithFingerprint]; nil if it had none.
	Fingerprint []byte
	// Attempt and Token identify the run, and 0 if it began without Redis.
	Attempt int
	Token   int64
	// At is when the run began to commit, by the clock of its host.
	At time.Time
}

// ErrUndecided says that the [Proof] of a key could not be asked, so it is not known whether an earlier run has taken effect.
// Nothing runs, and the caller may come again. It comes with [ErrUnavailable], but does not open a guard that fails open.
var ErrUndecided = errors.New("holdfast: the proof could not be asked")

// WithProof asks a proof about each run that may not be the first: an earlier attempt has failed or crashed, or its outcome is
// unknown. If a run has committed, the record is completed with what the proof has, and the caller gets that value as after any
// completed run. If none has, the run begins. If the proof cannot be asked, the error is [ErrUndecided].
//
// A run that looks like the first one, because Redis has lost the record or its retention has passed, begins without a question:
// its transaction finds the effect of the earlier run. So there is at most one commit of a key, whatever Redis loses, for as long
// as the proof is kept.
//
// The proof covers what was committed with it and nothing else. With [HoldFailures] it turns an unknown outcome into a completed
// one if a run has committed, and leaves the others to an operator, unless [Proof.OnlyEffect] is true: then HoldFailures has
// nothing to hold, and has no effect. [Hold] still has one, unless the run has committed.
//
// [Once.Forget] of a key that has a proof is refused: the key would not run again. Defaults to none.
func WithProof(proof Proof) OnceOption {
	return newOnceOption("WithProof", proof, func(c *onceConfig) {
		if v := reflect.ValueOf(proof); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			c.lock.refuse(invalidOption("WithProof: the proof is nil"))
		}
		c.proof = proof
	})
}

// ProofAsked describes a question to a [Proof], or what the transaction of a run has found.
type ProofAsked struct {
	Key string
	// Attempt is the number of the attempt that asks. It is 0 if the outcome of an earlier one is unknown, and without Redis.
	Attempt int
	// Committed is true if a run had committed. Then the record is completed from the proof.
	Committed bool
	// Took is the duration of the question; 0 if the transaction of the run has found the answer.
	Took time.Duration
	// Err is why there is no answer.
	Err error
}

// onceFacts gives guards the facts of a Once.
type onceFacts struct{ *Once }

// Facts implements [seal.Source].
func (o onceFacts) Facts() seal.Facts {
	f := seal.Facts{Logger: o.client.logger, Hooks: &o.client.hooks}
	if o.config.proof != nil {
		f.NewProving = func() *seal.Proving { return o.newProving(nil) }
	}
	return f
}

// newProving returns what the store of the proof needs of a run; nil without a proof. The attempt is nil without Redis.
func (o *Once) newProving(a *Attempt) *seal.Proving {
	if o.config.proof == nil {
		return nil
	}
	p := &seal.Proving{
		Store: o.config.proof, Key: o.proofKey(), Fingerprint: o.config.record.Fingerprint,
		MaxValue: o.config.record.MaxValue, Retention: o.config.record.Retention,
		Logger: o.client.logger,
	}
	if converting, ok := o.config.proof.(seal.ConvertingProof); ok {
		p.Store = converting.Store()
	}
	if a != nil {
		p.Attempt, p.Token = a.number, a.lease.token
	}
	p.Complete = func(ctx context.Context, found any) error {
		c := found.(*Committed)
		o.asked(ctx, ProofAsked{Attempt: p.Attempt, Committed: true})
		if o.isAnother(c) {
			if a != nil { // its record has the fingerprint of this request, which would refuse the other one
				_ = attemptFacts{a}.Withdraw(ctx)
			}
			p.Find(nil, false, o.mismatch())
			return o.mismatch()
		}
		done := o.completed(ctx, a, c)
		p.Find(done.Record.Value, true, done)
		return done
	}
	return p
}

// proofKey is the key of the proof, and what KeyHash is a hash of. It has the prefix of the client, because clients with other prefixes
// have other records.
func (o *Once) proofKey() string { return o.client.prefix + o.key }

// askProof asks the proof about the key. It returns nil if no run has committed.
func (o *Once) askProof(ctx context.Context, attempt int) (*Committed, error) {
	began := o.client.now()
	asking, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(o.client.closing, func() { end(ErrClosed) })()
	found, err := o.config.proof.Committed(asking, o.proofKey())
	if err != nil {
		if context.Cause(asking) == ErrClosed {
			err = errorf("%w: %w", ErrClosed, err)
		}
		err = &undecidedError{key: o.key, cause: err}
	}
	o.asked(ctx, ProofAsked{Attempt: attempt, Committed: found != nil && err == nil, Took: o.client.now().Sub(began), Err: err})
	if err == nil && found != nil && o.isAnother(found) {
		return nil, o.mismatch()
	}
	return found, err
}

func (o *Once) asked(ctx context.Context, asked ProofAsked) {
	if hook := o.client.hooks.ProofAsked; hook != nil {
		asked.Key = o.key
		hook(ctx, asked)
	}
}

// undecidedError is the [ErrUndecided] of one call.
type undecidedError struct {
	key   string
	cause error
}

// Error returns the key and the reason.
func (e *undecidedError) Error() string {
	return errorf("%w: once %q: %w", ErrUndecided, e.key, e.cause).Error()
}

// Unwrap returns [ErrUndecided], [ErrUnavailable] and the reason.
func (e *undecidedError) Unwrap() []error { return []error{ErrUndecided, ErrUnavailable, e.cause} }

// isAnother reports whether the proof belongs to another request with the same key.
func (o *Once) isAnother(c *Committed) bool {
	own := o.config.record.Fingerprint
	return len(own) > 0 && len(c.Fingerprint) > 0 && !bytes.Equal(own, c.Fingerprint)
}

func (o *Once) mismatch() error { return errorf("%w: once %q", ErrFingerprintMismatch, o.key) }

// prove asks the proof about an attempt that may not be the first. The error is why it does not run; then it has ended.
func (a *Attempt) prove(ctx context.Context) error {
	if a.proving == nil || a.number == 1 {
		return nil
	}
	decided := false
	defer func() {
		if !decided { // the proof or a hook panics: no caller gets the attempt
			a.withdrawUnused(ctx)
		}
	}()
	found, err := a.once.askProof(ctx, a.number)
	decided = true
	switch {
	case err != nil:
		_ = attemptFacts{a}.Withdraw(ctx)
		return err
	case found != nil:
		return a.once.completed(ctx, a, found)
	}
	return nil
}

// completed records what the proof has, and returns the error for later callers. The proof counts whatever Redis replies: the next
// one that begins asks it too.
func (o *Once) completed(ctx context.Context, a *Attempt, c *Committed) *CompletedError {
	r := Record{
		Key: o.key, State: StateCompleted, Attempt: c.Attempt, Token: c.Token, Value: o.convert(c.Value), Fingerprint: c.Fingerprint,
		Note: o.config.record.Note, Label: o.config.record.Label, Ended: c.At, Retention: o.config.record.Retention,
	}
	if a != nil {
		r.Attempt, r.Token, r.Began = a.number, a.lease.token, a.began
		_ = a.Complete(ctx, r.Value) // the client retries what Redis has not confirmed
	}
	return &CompletedError{Record: r}
}

// convert returns a committed value in the form that records of the guard have.
func (o *Once) convert(value []byte) []byte {
	if converting, ok := o.config.proof.(seal.ConvertingProof); ok {
		return converting.Convert(value)
	}
	return value
}

// resolveByProof returns the error for a caller in place of an unknown outcome: the same error if no run has committed.
func (o *Once) resolveByProof(ctx context.Context, unknown *OutcomeUnknownError) error {
	found, err := o.askProof(ctx, 0)
	switch {
	case err != nil:
		return err
	case found == nil:
		return unknown
	}
	done := o.completed(ctx, nil, found)
	seen := unknown.Record
	done.Record.Attempt, done.Record.Token, done.Record.Began = seen.Attempt, seen.Token, seen.Began
	if was, err := o.seen(seen); err == nil {
		_ = o.resolve(ctx, was, done.Record.Value) // the next one that begins asks again if it was not recorded
	}
	return done
}

// resolveProof tells the proof what an operator has found out about a record, unless that is not any more what the operator saw.
func (o *Once) resolveProof(ctx context.Context, was script.Seen, value []byte) error {
	if o.config.proof == nil {
		return nil
	}
	r, err := o.Peek(ctx)
	if err != nil {
		return err
	}
	now, err := o.seen(r)
	if err != nil || now.State != was.State || now.Token != was.Token || r.State == StateRunning || r.State == StateCompleted {
		return err // the record refuses it
	}
	if err := o.checkUnproven(ctx, "not resolved: a run has committed its effect"); err != nil {
		return err
	}
	found := Committed{Value: value, Fingerprint: r.Fingerprint, Attempt: r.Attempt, Token: r.Token, At: time.Now()}
	if _, ok := o.config.proof.(seal.ConvertingProof); ok {
		found.Value = nil // it is in the form of records
	}
	err = o.config.proof.Resolve(ctx, o.proofKey(), found)
	if err != nil && !errors.Is(err, ErrCompleted) {
		err = &undecidedError{key: o.key, cause: err}
	}
	return err
}

// checkUnproven returns an error if a run has committed, which says what an operator cannot do therefore.
func (o *Once) checkUnproven(ctx context.Context, refusal string) error {
	if o.err != nil || o.config.proof == nil {
		return nil
	}
	found, err := o.askProof(ctx, 0)
	switch {
	case err != nil:
		return err
	case found != nil:
		return errorf("holdfast: %s: %w", refusal,
			&CompletedError{Record: Record{
				Key: o.key, State: StateCompleted, Attempt: found.Attempt, Token: found.Token, Value: o.convert(found.Value),
				Fingerprint: found.Fingerprint, Ended: found.At,
			}})
	}
	return nil
}

// warnUnproven warns once per client of a successful run that left no proof.
func (a *Attempt) warnUnproven() {
	if !a.proving.Begun() {
		a.once.client.warnOnce("a run with a proof completed without its transaction, so nothing proves its effect",
			"once", digest(a.once.keys.Lock), "attempt", a.number)
	}
}
