package httpguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// ErrNoRecord says that there is no record of a key: no request of it has run, its record has expired, or the guard
// makes another key of those requests.
var ErrNoRecord = errors.New("holdfast: nothing is recorded of the key")

// IdempotencyKey returns the key that Idempotent joins to its scope for a client's Idempotency-Key, without quotes. The
// error is that of [NewKey].
func IdempotencyKey(value string) (Key, error) { return NewKey(idempotencyKey, value) }

// Ledger reads and changes the records of one guard of Once or Idempotent, for operators and for pages that tell
// clients what became of their requests. It has the guard's client, secret and codec. Get it from [Once.Ledger]; an
// adapter's guard has its methods.
//
// Make keys with [NewKey] and [Join], of the same parts in the same order as the guard's key function makes them.
// Another key is refused with [ErrKeyShape], as far as the guard knows the shape from requests in this process. Before
// the first request, a wrong key is [ErrNoRecord], because it has no record.
//
// The methods of the zero Ledger return an error.
type Ledger struct{ once *Once }

// engine returns the guard of the ledger.
func (l *Ledger) engine() (*Once, error) {
	if l == nil || l.once == nil {
		return nil, errors.New("holdfast: the ledger is that of no guard: make one with NewOnce or NewIdempotent")
	}
	return l.once, nil
}

// Ledger returns the ledger of the guard.
func (o *Once) Ledger() *Ledger { return &Ledger{o} }

// Record is the record of a key.
type Record struct {
	core.Record
	// KeyHash is the hash of the key, as it appears in logs and hooks.
	KeyHash string
	// Answer is the answer of a completed run, or the one given to Resolve. It is nil if the run has not completed, if
	// nothing of the answer was recorded, and if the codec cannot decrypt it.
	Answer *Response

	once *Once
}

// Peek reads the record of a key. The zero State means that no record prevents a request from running. Errors are
// [ErrKeyRequired] for the zero Key, [ErrKeyShape], and those of [core.Once.Peek].
func (l *Ledger) Peek(ctx context.Context, key Key) (Record, error) {
	o, err := l.engine()
	if err != nil {
		return Record{}, err
	}
	if err := o.accept(key); err != nil {
		return Record{}, err
	}
	found, err := o.recordOf(o.recordName(key)).Peek(ctx)
	if err != nil {
		return Record{}, err
	}
	return o.read(found), nil
}

// Resolve records that a request has taken effect, whatever the record says at the moment of the call. If somebody decides
// by what the record said, use Peek and [Record.Resolve]. Errors are also those of [Ledger.Peek].
func (l *Ledger) Resolve(ctx context.Context, key Key, answer *Response) error {
	r, err := l.Peek(ctx, key)
	if err != nil {
		return err
	}
	return r.Resolve(ctx, answer)
}

// Forget deletes the record of a key, so that the next request runs, whatever the record says at the moment of the call,
// except that a request is running. If somebody decides by what the record said, use Peek and [Record.Forget]. Errors are
// also those of [Ledger.Peek].
func (l *Ledger) Forget(ctx context.Context, key Key) error {
	r, err := l.Peek(ctx, key)
	if err != nil {
		return err
	}
	return r.Forget(ctx)
}

// Records reads the records of a scope of Idempotent, the latest first. They are listed if the guard has a quota or
// holds failures ([core.HoldFailures]), from its first request with that on. Otherwise Records fails. It also fails
// for a guard that is not Idempotent, whose keys have no scope. Errors are also those of [Ledger.Peek] and
// [core.Client.GroupRecords].
func (l *Ledger) Records(ctx context.Context, scope Key) ([]Record, error) {
	o, err := l.engine()
	if err != nil {
		return nil, err
	}
	if !o.config.Scoped {
		return nil, errors.New("holdfast: keys of Once have no scope: their records are not listed")
	}
	if !o.config.listed() {
		return nil, errors.New("holdfast: records are not listed: use WithQuota or WithFailurePolicy(HoldFailures)")
	}
	key, err := Join(scope, Key{parts: []part{{idempotencyKey, "any"}}})
	if err != nil {
		return nil, err
	}
	if err := o.accept(key); err != nil {
		return nil, err
	}
	found, err := o.client.GroupRecords(ctx, o.recordName(key))
	if err != nil {
		return nil, err
	}
	records := make([]Record, len(found))
	for i, r := range found {
		records[i] = o.read(r)
	}
	return records, nil
}

// Resolve records that the request has taken effect: an operator has found out how a run of unknown outcome ended, or
// has done by hand what it failed to do. From then on, until the record expires, requests of the key get the answer if
// the guard replays, and 409 already-completed otherwise. It applies to the record as it was read.
//
// The answer needs a status from 200 to 999, the header fields that belong to the body, such as Content-Type, and a
// body within the guard's record limit. Resolve leaves out cookies and other fields of one client or connection, see
// [Difference]. Without an answer (nil) requests are refused with already-completed.
//
// Errors:
//
//   - [ErrNoRecord] if no request of the key has run, or none has left a record. A released one leaves none behind a
//     quota.
//   - [core.ErrChanged] if the record has changed since it was read, [core.ErrInProgress] while a request is running, and
//     [core.ErrCompleted] if one has completed before. The record is not changed.
//   - Those of [core.Once.Resolve].
func (r *Record) Resolve(ctx context.Context, answer *Response) error {
	if r.State == core.StateNone && r.Attempt == 0 {
		return ErrNoRecord
	}
	var value []byte
	if answer != nil {
		var err error
		if value, err = r.once.seal(answer, r.KeyHash); err != nil {
			return err
		}
	}
	return r.once.recordOf(r.Key).Resolve(ctx, r.Record, value)
}

// seal makes the value of a record of an operator's answer.
func (o *Once) seal(answer *Response, hash string) ([]byte, error) {
	switch {
	case !Replayable(answer) || !httprecord.ValidStatus(answer.Status):
		return nil, fmt.Errorf("holdfast: status %d of an answer: 200 to 999 are allowed", answer.Status)
	case len(answer.Body) > o.config.RecordLimit:
		return nil, fmt.Errorf("holdfast: answer of %d bytes: the guard records %d at most", len(answer.Body), o.config.RecordLimit)
	}
	kept := *answer
	kept.Header, kept.around = Difference(http.Header{}, answer.Header), nil
	value, err := o.encode(&kept, hash)
	if err != nil {
		return nil, fmt.Errorf("holdfast: answer not encrypted, nothing is recorded: %w", err)
	}
	return value, nil
}

// Forget deletes the record, so that the next request of the key runs: the order was cancelled, or an operator has
// found out that a run of unknown outcome has not taken effect. It applies to the record as it was read. The error is
// [ErrNoRecord] if no record prevented a request from running, or that of [core.Once.Forget]: [core.ErrChanged] if the
// record has changed since, and [core.ErrInProgress] while a request is running. For the record of a run that is stuck,
// see [core.Once.ForgetRunning].
func (r *Record) Forget(ctx context.Context) error {
	if r.State == core.StateNone {
		if r.once.memory.Forget(r.KeyHash) { // of a run without Redis in this process
			return nil
		}
		return ErrNoRecord
	}
	err := r.once.recordOf(r.Key).Forget(ctx, r.Record)
	if err == nil {
		r.once.memory.Forget(r.KeyHash) // only now: after a refusal the run counts
	}
	return err
}

// accept refuses a key that is not of this guard.
func (o *Once) accept(key Key) error {
	if key.IsZero() {
		return ErrKeyRequired
	}
	return o.shapes.check(key, o.config.Scoped)
}

// recordName returns the name of a key's record.
func (o *Once) recordName(key Key) string { return key.record(o.config.KeySecret) }

// recordOf returns the record of that name.
func (o *Once) recordOf(name string) *core.Once { return o.client.Once(name, o.recordOptions()...) }

// recordOptions are the options of a record that is written now.
func (o *Once) recordOptions() []core.OnceOption {
	if o.config.RetentionUntil == nil {
		return o.options
	}
	return append(slices.Clip(o.options), core.WithRetention(o.config.untilThen(time.Now())))
}

// read makes a Record of one of core.
func (o *Once) read(found core.Record) Record {
	r := Record{Record: found, once: o, KeyHash: found.Key[strings.LastIndexByte(found.Key, ':')+1:]}
	if found.State == core.StateCompleted && !found.Omitted {
		if answer, err := o.decode(found.Value, r.KeyHash); err == nil {
			r.Answer = answer
		}
	}
	return r
}
