package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/inventory"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Once makes what a key stands for happen once. It records in Redis that a run is in progress, and later that the run
// completed, with its result, until the record expires. It is cheap to make, holds nothing, and may be used by many
// goroutines at once.
//
// Once is not a lock with a longer TTL. The lease of a run in progress ([WithTTL], renewed) and the retention of the
// record ([WithRetention]) are independent. A crash blocks the key for the first, and a success for the second.
// The methods of a nil Once return [ErrInvalidOption].
//
// "Once" is what Redis can promise: no second run begins while a record says that there was one. Redis can lose a
// record by eviction, by a failover without acknowledgement, or by FLUSHALL. Where a second run costs money, keep a
// unique constraint in the database too, or let the database refuse smaller tokens: see [TokenFrom].
type Once struct {
	handle
	client *Client
	key    string
	keys   script.Keys
	config onceConfig
	err    error // key or option refused
}

// Once returns the [Once] of a key. The key is independent of a lock with that name: neither excludes the other. Once
// does no I/O; its methods report a wrong key or option.
func (c *Client) Once(key string, opts ...OnceOption) *Once {
	o := &Once{client: c, key: key, config: newOnceConfig(c.lock, opts)}
	if o.keys, o.err = keysOf(c.prefix, key); o.err == nil {
		o.keys = o.keys.Once()
		o.err = o.config.check(c.redis)
	}
	o.handle = seal.HandleOf(onceFacts{o})
	o.config.record.Instance = inventory.ShortInstance(c.instance)
	if o.err == nil && o.config.record.Grouped {
		group, ok := script.GroupKey(c.prefix, key)
		if !ok {
			o.err = invalidOption("WithGroup, WithQuota: the key %q has no braces to name its group", key)
		}
		o.config.record.Group.Key = group
	}
	return o
}

// check returns the error of a Once that does not exist, or whose key or options are refused.
func (o *Once) check() error {
	if o == nil || o.client == nil {
		return invalidOption("the Once is nil: make it with Client.Once")
	}
	return o.err
}

// Key returns the key.
func (o *Once) Key() string {
	if o == nil {
		return ""
	}
	return o.key
}

// Result is what [Once.Do] returns.
type Result struct {
	// Value is what this run or the recorded run returned.
	Value []byte
	// Replayed says that fn did not run now: an earlier run had completed.
	Replayed bool
	// Attempt is the number of the run that returned the value, from 1. A greater number means that earlier runs
	// failed or crashed. 0 means that there was no run, see [Once.Resolve].
	Attempt int
	// Omitted says that a replayed run had a value that was not recorded: too large, or lost with its process.
	Omitted bool
}

// Do runs fn, or returns what fn returned before, with Replayed true. The context that fn gets carries the fencing
// token ([TokenFrom]). It ends when ctx ends or the lease does, with [ErrLeaseLost] as its cause if the lease was
// lost.
//
// If fn returns an error, or panics, the failure policy decides. With [RetryFailures] the next call runs fn again.
// With [HoldFailures] all further calls get [ErrOutcomeUnknown]. Do returns fn's error; a panic continues. fn can overrule
// both its end and the policy, by [Complete], [Release] and [Hold]. After Hold, Do returns ErrOutcomeUnknown even if fn
// returned nil.
//
// While another run is in progress, Do returns [ErrInProgress], or waits if [WithWait] says so. Other errors are those
// of [Once.Begin], except [ErrCompleted], and the errors of [Attempt.Complete]. After an error of Complete, fn has run, and
// Value is set. If fn is nil, Do returns [ErrInvalidOption] before it asks Redis.
func (o *Once) Do(ctx context.Context, fn func(context.Context) ([]byte, error)) (Result, error) {
	if fn == nil {
		return Result{}, invalidOption("Do: the function is nil")
	}
	a, err := o.Begin(ctx)
	var done *CompletedError
	if errors.As(err, &done) {
		r := done.Record
		return Result{Value: r.Value, Replayed: true, Attempt: r.Attempt, Omitted: r.Omitted}, nil
	}
	if err != nil {
		return Result{}, err
	}
	return a.run(ctx, fn)
}

// Begin claims the key for a run. The caller must end the returned [Attempt] with Complete, Release or Hold. Until
// then the client renews it. If the process crashes, the failure policy decides when the lease expires.
//
// An attempt whose lease has expired in Redis continues with its next renewal, unless another attempt has begun.
// [Client.ForceUnlock] does not end an attempt, and returns false for its key.
//
// If the end of an earlier attempt of this client for the key is not confirmed yet, Begin first sends it until Redis replies.
// So a run that took effect is not repeated by its own client.
//
// With an error nothing is claimed, now or later. What was claimed before the error, as before [ErrNotReplicated], is taken
// back within moments. Errors:
//
//   - [ErrCompleted] with the record in a [CompletedError].
//   - [ErrInProgress] with the rest of the lease in an [InProgressError], after waiting as long as [WithWait] says, or
//     at once
//     if it is [ErrTooManyWaiters] as well.
//   - [ErrOutcomeUnknown], [ErrFingerprintMismatch].
//   - [ErrTooManyKeys] and [ErrOutsideWindow], by [WithQuota] and [WithWindow].
//   - [ErrUnavailable] if Redis did not reply; the context's error if that ended first.
//   - [ErrUndecided] if the proof did not, see [WithProof].
//   - [ErrInvalidName], [ErrInvalidOption], [ErrWrongType], [ErrClosed].
func (o *Once) Begin(ctx context.Context) (*Attempt, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	e := o.client.engine
	if !e.operations.Start() {
		return nil, ErrClosed
	}
	defer e.operations.Finish()
	a := o.newAcquisition(ctx)
	began := e.now()
	if e.hooks.BeginStart != nil {
		ctx = cmp.Or(e.hooks.BeginStart(ctx, BeginStart{Key: o.key}), ctx)
	}
	ran := false
	defer func() {
		if !ran { // the hook of the wait panics, or the proof: the others have to see the call end
			a.beginEnds(ctx, began, errHookPanics)
		}
	}()
	lease, err := a.run(ctx)
	var unknown *OutcomeUnknownError
	if o.config.proof != nil && errors.As(err, &unknown) {
		err = o.resolveByProof(ctx, unknown)
	}
	ran = true
	if err != nil {
		err = o.refusal(a, err)
		a.beginEnds(ctx, began, err)
		return nil, err
	}
	attempt := &Attempt{once: o, lease: lease, number: a.grant.Attempt, began: a.grant.Began}
	attempt.handle = seal.HandleOf(attemptFacts{attempt})
	attempt.proving = o.newProving(attempt)
	handed := false
	defer func() {
		if !handed { // the hook panics: no caller gets the attempt
			attempt.withdrawUnused(ctx)
		}
	}()
	a.beginEnds(ctx, began, nil)
	handed = true
	if err := attempt.prove(ctx); err != nil {
		return nil, err
	}
	return attempt, nil
}

// withdrawUnused takes back an attempt that no caller has got. The release is sent in the background.
func (a *Attempt) withdrawUnused(ctx context.Context) {
	e := a.once.client.engine
	e.renewer.Remove(&a.lease.entry)
	e.acquiring.ReleaseInBackground(a.lease.strategy, &a.lease.hold, script.NeverHeld)
	a.ends(ctx, OutcomeWithdrawn, AttemptEnd{})
}

// newHold returns the hold of one attempt, still without an ID.
func (o *Once) newHold() script.Hold {
	h := o.config.lock.hold(o.key, o.keys)
	h.Terms = &o.config.record
	return h
}

func (o *Once) newAcquisition(ctx context.Context) *acquisition {
	e := o.client.engine
	config := &o.config.lock
	wait := config.wait
	if holdingFrom(ctx).of(e, o.keys.Lock) != nil {
		wait = 0 // it would wait for itself
	}
	a := &acquisition{engine: e, config: config}
	a.Request = acquire.Request{
		Env: &e.acquiring, Strategy: o.backend(), Caller: a, Wait: wait,
		Hold: o.newHold(),
	}
	if wait != 0 {
		a.Question = o.config.record.Question(config.ack)
	}
	e.ids.Renew(&a.Hold)
	a.Hold.Owner = a.Hold.ID
	return a
}

// refusal turns what the request of a lock says into what it means here.
func (o *Once) refusal(a *acquisition, err error) error {
	var busy *NotAcquiredError
	switch {
	case !errors.As(err, &busy):
		return err
	case a.Answered, errors.Is(busy.cause, ErrTooManyWaiters):
		return &InProgressError{
			Key: o.key, RetryAfter: busy.RetryAfter, Holder: busy.Holder, Instance: busy.Instance, cause: busy.cause,
		}
	}
	return errorf("holdfast: once %q not begun: %w", o.key, cmp.Or(busy.cause, unavailable(a.LastErr, nil)))
}

// Peek reads the record, which may be outdated when it arrives. The zero State means that there is none.
func (o *Once) Peek(ctx context.Context) (Record, error) {
	var found script.Record
	err := o.ask(ctx, "peek at", func(ctx context.Context) (err error) {
		found, err = o.backend().Peek(ctx, o.keys)
		return err
	})
	if err != nil {
		return Record{}, err
	}
	r := newRecord(o.key, found)
	r.ProofKey = o.proofKey()
	return r, nil
}

// Forget deletes the record, so that the key can be used again: the order was cancelled, or an operator has found out
// how a run of unknown outcome ended. The record leaves its group too, whether or not this Once is one [WithGroup].
//
// It applies to the record that was seen, as [Once.Peek] or [Client.Records] returned it: to the same state, the same
// attempt and the same end. A record that has become another one meanwhile is kept. The State, the Token, the Ended and
// the OnExpiry of seen count, the Attempt if the State is StateNone, and the Key unless it is empty; so a page can
// carry them from its question to the answer. The zero Record means that there was none, and no attempt.
//
// Errors:
//
//   - [ErrChanged] if it is not as it was seen. It is also a [CompletedError] or an [InProgressError] if that is what it
//     has become.
//   - [ErrInProgress] with the rest of the lease in an [InProgressError] while an attempt is running. See
//     [Once.ForgetRunning].
//   - [ErrCompleted] if a [WithProof] has what a run has committed, and [ErrUndecided] if the proof cannot be asked.
//   - [ErrUnavailable] if Redis did not confirm it: read the record again.
//   - The context's error if that ended first; [ErrInvalidName], [ErrInvalidOption], [ErrWrongType], [ErrClosed].
func (o *Once) Forget(ctx context.Context, seen Record) error { return o.forget(ctx, seen, false) }

// ForgetRunning is [Once.Forget] that also deletes the record of an attempt that is running, if it is the one that was
// seen. It does not stop the run, so the next one may overlap with it. The run loses its lease at its next renewal, a third
// of its TTL later at most. If it completes all the same, it is recorded, unless another attempt has begun and its
// record still exists.
func (o *Once) ForgetRunning(ctx context.Context, seen Record) error {
	return o.forget(ctx, seen, true)
}

// forget is Forget, and with evenRunning ForgetRunning.
func (o *Once) forget(ctx context.Context, record Record, evenRunning bool) error {
	seen, err := o.seen(record)
	if err == nil {
		err = o.checkUnproven(ctx, "not forgotten: its effect is committed, so it would not run again: delete its proof first")
	}
	if err != nil {
		return err
	}
	forgot := o.keys.Released("forgot:" + o.client.ids.Next())
	var refused *script.Refusal
	err = o.ask(ctx, "forget", func(ctx context.Context) (err error) {
		refused, err = o.backend().Forget(ctx, o.config.lock.ack, o.keys, o.group(), seen, evenRunning, forgot)
		return err
	})
	if err == nil && refused != nil {
		err = onceError(o.key, refused)
	}
	return err
}

func (o *Once) backend() *script.Once { return &o.client.server.once }

// group is where the record may be listed, whether or not this Once lists it.
func (o *Once) group() script.Group {
	g := o.config.record.Group
	if key, ok := script.GroupKey(o.client.prefix, o.key); ok {
		g.Key = key
	}
	return g
}

// Resolve records that what the key stands for has been done: an operator has found out how a run of unknown outcome
// ended, or has done it by hand. From then on [Once.Begin] returns [ErrCompleted] and [Once.Do] the value, as after
// [Attempt.Complete], until the record expires: after the retention of this Once, or when it would have expired without
// Resolve, whichever is later. Waiters get the value at once. Its counterpart is [Once.Forget], which
// allows another run. The record keeps the number and the token of the last attempt, whose further calls return
// [ErrStale].
//
// It applies to the record that was seen, as [Once.Forget] does. For a key that has no record, seen is the zero Record. A record
// that was completed before gets the value if it has none: so an operator can supply a result that was too large or lost. To correct
// a value, call [Once.Forget], and then Resolve with the zero Record.
//
// With [WithProof] the proof is told first. So the key does not run again for as long as the proof is kept, whatever Redis loses, and an
// attempt that continues late commits nothing.
//
// Errors:
//
//   - [ErrChanged] if it is not as it was seen. It is also a [CompletedError] or an [InProgressError] if that is what it
//     has become. The record is not changed.
//   - [ErrInProgress] with the rest of the lease in an [InProgressError] while an attempt is running. The attempt is
//     not affected.
//   - [ErrCompleted] with the record in a [CompletedError] if it was completed before, and has a value or is given none, or if a run
//     has committed with its proof. The record is not changed.
//   - [ErrUndecided] if the proof cannot be told. The record is not changed.
//   - [ErrValueTooLarge] if it was recorded without its value.
//   - [ErrUnavailable] if Redis did not confirm the record: call Resolve again, and ErrCompleted says that the record
//     exists.
//   - The context's error if that ended first; [ErrInvalidName], [ErrInvalidOption], [ErrWrongType], [ErrClosed].
func (o *Once) Resolve(ctx context.Context, seen Record, value []byte) error {
	was, err := o.seen(seen)
	if err == nil {
		err = o.resolveProof(ctx, was, value)
	}
	if err != nil {
		return err
	}
	return o.resolve(ctx, was, value)
}

// resolve is Resolve of the record alone.
func (o *Once) resolve(ctx context.Context, was script.Seen, value []byte) error {
	h := o.newHold()
	o.client.ids.Renew(&h)
	var refused *script.Refusal
	err := o.ask(ctx, "resolve", func(ctx context.Context) (err error) {
		refused, err = o.backend().Resolve(ctx, &h, o.group(), was, value)
		return err
	})
	if err != nil {
		return err
	}
	if refused != nil {
		return onceError(o.key, refused)
	}
	return o.checkValue(value)
}

// checkValue returns the error of a run that was completed without its value.
func (o *Once) checkValue(value []byte) error {
	if most := o.config.record.MaxValue; len(value) > most {
		return errorf("%w: once %q completed without its value: %d bytes, at most %d are allowed",
			ErrValueTooLarge, o.key, len(value), most)
	}
	return nil
}

// ask sends an idempotent command until it is answered, for some seconds.
func (o *Once) ask(ctx context.Context, what string, command func(context.Context) error) error {
	if err := o.check(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, acquire.ReleaseTimeout)
	defer cancel()
	return o.client.operate(ctx, what+" once", o.key, o.keys, func() error { return transport.RetryUntilAnswered(bounded, command) })
}

// OnceValue is [Once.Do] for a function that returns a value of type T. It runs fn, or returns the value that an earlier run
// recorded. Values are recorded as JSON, by [encoding/json], unless the Once has [WithEncoding].
//
// It returns the same errors as Once.Do. If fn returned a value that cannot be encoded, the run counts as failed: the
// error is the one of the encoding, the failure policy decides what becomes of the record, and the value is returned
// too. If a recorded value cannot be decoded into a T, the error names the type, and the record stays as it is: the key
// may be in use for another type, or by an older version of the program. If the earlier run had a value that was not
// recorded, see [Result], the error is [ErrCompleted].
func OnceValue[T any](ctx context.Context, o *Once, fn func(context.Context) (T, error)) (T, error) {
	var value T
	if fn == nil {
		return value, invalidOption("OnceValue: the function is nil")
	}
	result, err := o.Do(ctx, func(ctx context.Context) ([]byte, error) {
		returned, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		value = returned
		return o.encode(value, reflect.TypeFor[T]())
	})
	if err != nil || !result.Replayed {
		return value, err
	}
	if err := o.decode(result, &value, reflect.TypeFor[T]()); err != nil {
		var none T // not half of the value
		return none, err
	}
	return value, nil
}

// WithEncoding sets how [OnceValue] turns values into bytes and back, with functions such as [json.Marshal] and
// [json.Unmarshal]. decode gets a pointer to the value. All programs that share a key need the same encoding. Defaults to JSON.
func WithEncoding(encode func(value any) ([]byte, error), decode func(data []byte, value any) error) OnceOption {
	return newOnceOption("WithEncoding", nil, func(c *onceConfig) {
		if encode == nil || decode == nil {
			c.lock.refuse(invalidOption("WithEncoding: a function is nil"))
		}
		c.encode, c.decode = encode, decode
	})
}

func (o *Once) encode(value any, as reflect.Type) ([]byte, error) {
	encode := o.config.encode
	if encode == nil {
		encode = json.Marshal
	}
	data, err := encode(value)
	if err != nil {
		return nil, errorf("holdfast: once %q: a value of type %v cannot be encoded: %w", o.key, as, err)
	}
	return data, nil
}

// decode decodes the value of an earlier run into the pointer to.
func (o *Once) decode(r Result, to any, as reflect.Type) error {
	if r.Omitted || o.config.encode == nil && len(r.Value) == 0 { // a run that failed after Complete has no value
		return errorf("%w: once %q: its value of type %v was not recorded", ErrCompleted, o.key, as)
	}
	decode := o.config.decode
	if decode == nil {
		decode = json.Unmarshal
	}
	if err := decode(r.Value, to); err != nil {
		return errorf("holdfast: once %q: the recorded value cannot be decoded into type %v: %w", o.key, as, err)
	}
	return nil
}

// BeginAll begins an attempt of each Once, for callers that take much work at a time. It returns what [Once.Begin] would have
// returned for each, by index: an attempt or an error. The requests leave in one pipeline per master, and Redis executes them in the
// order given. Of more than 256, the next 256 leave when those before have been answered. Of two with one key, the first one begins,
// and the second gets [ErrInProgress]. A request that a hook, or an unconfirmed completion of its key, delays by 100 ms leaves after
// the others.
//
// A Once with [WithWait] waits after that, at the same time as the others. BeginAll returns when the last wait has
// ended. The caller must end each attempt.
//
// A nil Once gets [ErrInvalidOption]. If a hook panics, no attempt is left behind, and the panic continues.
func (c *Client) BeginAll(ctx context.Context, onces ...*Once) ([]*Attempt, []error) {
	attempts, handed := make([]*Attempt, len(onces)), false
	defer func() {
		if handed {
			return
		}
		for _, a := range attempts {
			if a != nil {
				a.withdrawUnused(ctx)
			}
		}
	}()
	errs := make([]error, 0, len(onces))
	for len(errs) < len(onces) {
		first := len(errs) // not more at once: each has a goroutine, and the order of batches in flight is open
		errs = append(errs, transport.DoGrouped(ctx, min(len(onces)-first, transport.MaxBatch), func(ctx context.Context, i int) (err error) {
			i += first
			if onces[i] == nil {
				return invalidOption("BeginAll: the Once with index %d is nil", i)
			}
			now := *onces[i]
			now.config.lock.wait = 0 // a waiting call may send nothing for a while, and would delay the other requests
			attempts[i], err = now.Begin(ctx)
			return err
		})...)
	}
	var waiting []int
	for i, err := range errs {
		if errors.Is(err, ErrInProgress) && onces[i].config.lock.wait != 0 {
			waiting = append(waiting, i)
		}
	}
	transport.DoGrouped(ctx, len(waiting), func(_ context.Context, i int) error { // with ctx none of them is in the group
		i = waiting[i]
		attempts[i], errs[i] = onces[i].Begin(ctx)
		return nil
	})
	handed = true
	return attempts, errs
}
