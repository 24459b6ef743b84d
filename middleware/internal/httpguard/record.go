package httpguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// ErrNoRecord says that there is no record of a key: no request of it has run, its record has expired, or the guard
// makes another key of those requests.
var ErrNoRecord = errors.New("holdfast: nothing is recorded of the key")

// IdempotencyKey returns the key that Idempotent joins to its scope for the value of the header field, with or without its quotes.
// The error is that of [ParseKeyField].
func IdempotencyKey(value string) (Key, error) {
	chosen, err := ParseKeyField(HeaderIdempotencyKey, []string{value})
	if err != nil {
		return Key{}, err
	}
	return NewKey(idempotencyKey, chosen)
}

// Ledger reads and changes the records of one guard of Once or Idempotent, for operators. Get it from [Once.Ledger]. An adapter's
// guard has its methods, which package httplock documents. Those of the zero Ledger return an error.
type Ledger struct {
	once *Once
	key  func(*http.Request) (Key, error) // of the guard
}

// engine returns the guard of the ledger.
func (l *Ledger) engine() (*Once, error) {
	if l == nil || l.once == nil {
		return nil, errors.New("holdfast: the ledger is that of no guard: make one with NewOnce or NewIdempotent")
	}
	return l.once, nil
}

// Ledger returns the ledger of the guard with that key function.
func (o *Once) Ledger(key func(*http.Request) (Key, error)) *Ledger { return &Ledger{o, key} }

// Peek reads the record of the key of these texts.
func (l *Ledger) Peek(ctx context.Context, parts ...string) (core.Record, error) {
	if _, err := l.engine(); err != nil {
		return core.Record{}, err
	}
	key, err := keyOfParts(ctx, l.key, parts)
	if err != nil {
		return core.Record{}, err
	}
	return l.PeekKey(ctx, key)
}

// PeekKey reads the record of the key of these parts.
func (l *Ledger) PeekKey(ctx context.Context, parts ...Key) (core.Record, error) {
	o, err := l.engine()
	if err != nil {
		return core.Record{}, err
	}
	name, err := o.nameOf(parts)
	if err != nil {
		return core.Record{}, err
	}
	found, err := o.recordOf(name).Peek(ctx)
	if err != nil {
		return core.Record{}, err
	}
	return o.read(found), nil
}

// Records reads the records of the scope of Idempotent of these texts, the latest first.
func (l *Ledger) Records(ctx context.Context, scope ...string) ([]core.Record, error) {
	o, err := l.engine()
	if err != nil {
		return nil, err
	}
	if !o.config.Scoped {
		return nil, errors.New("holdfast: keys of Once have no scope: their records are not listed")
	}
	if !o.config.listed() {
		return nil, errors.New("holdfast: records are not listed: use core.WithQuota or core.WithFailurePolicy(core.HoldFailures)")
	}
	key, err := keyOfParts(ctx, l.key, append(slices.Clip(scope), "any"))
	if err != nil {
		return nil, err
	}
	name, err := o.nameOf([]Key{key})
	if err != nil {
		return nil, err
	}
	records, err := o.client.GroupRecords(ctx, name)
	for i, r := range records {
		records[i] = o.read(r)
	}
	return records, err
}

// Resolve records that the request has taken effect, with a response as text, or without one.
func (l *Ledger) Resolve(ctx context.Context, seen core.Record, value []byte) error {
	o, hash, err := l.seen(seen)
	switch {
	case err != nil:
		return err
	case seen.State == core.StateNone && seen.Attempt == 0:
		return ErrNoRecord
	}
	if value != nil {
		if value, err = o.seal(value, hash); err != nil {
			return err
		}
	}
	return o.recordOf(seen.Key).Resolve(ctx, seen, value)
}

// Forget deletes the record, so that the next request of the key runs.
func (l *Ledger) Forget(ctx context.Context, seen core.Record) error {
	o, _, err := l.seen(seen)
	switch {
	case err != nil:
		return err
	case seen.State == core.StateNone:
		if o.records.Forget(seen.Key) { // of a run without Redis in this process
			return nil
		}
		return ErrNoRecord
	}
	if err = o.recordOf(seen.Key).Forget(ctx, seen); err == nil {
		o.records.Forget(seen.Key) // only now: after a refusal the run counts
	}
	return err
}

// seen returns the guard of the ledger, and the hash of the key of a record that was read before.
func (l *Ledger) seen(r core.Record) (o *Once, hash string, err error) {
	if o, err = l.engine(); err != nil {
		return nil, "", err
	}
	if !httprecord.IsName(r.Key) {
		return nil, "", fmt.Errorf("%w: %q is not the record of an HTTP guard: pass what Peek returned", core.ErrInvalidName, r.Key)
	}
	return o, hashOf(r), nil
}

// hashOf returns the hash of the key in the name of a record.
func hashOf(r core.Record) string { return r.Key[strings.LastIndexByte(r.Key, ':')+1:] }

// seal makes the value of a record of an operator's response.
func (o *Once) seal(text []byte, hash string) ([]byte, error) {
	written, err := httprecord.Read(bytes.NewReader(text), o.config.MaxValue)
	if err != nil {
		return nil, err
	}
	value, err := o.encode(&Response{Status: written.Status, Header: written.Header, Body: written.Body}, hash)
	if err != nil {
		return nil, fmt.Errorf("holdfast: response not encrypted, nothing is recorded: %w", err)
	}
	return value, nil
}

// nameOf returns the name of the record of the key of these parts. It refuses a key that is not of this guard.
func (o *Once) nameOf(parts []Key) (string, error) {
	key, err := Join(parts...)
	if err != nil {
		return "", err
	}
	if err := o.shapes.check(key, o.config.Scoped); err != nil {
		return "", err
	}
	return o.recordName(key), nil
}

// recordName returns the name of a key's record.
func (o *Once) recordName(key Key) string { return key.record(o.config.KeySecret) }

// recordOf returns the record of that name.
func (o *Once) recordOf(name string) *core.Once {
	ask := guards.Ask{Name: name}
	if o.config.RetentionUntil != nil {
		ask.Retention = o.config.untilThen(time.Now())
	}
	return o.records.Of(ask)
}

// read returns a record with its response as text in place of the value. There is none if the codec cannot decrypt it.
func (o *Once) read(r core.Record) core.Record {
	value := r.Value
	r.Value = nil
	if r.State != core.StateCompleted || r.Omitted {
		return r
	}
	response, err := o.decode(value, hashOf(r))
	if r.Omitted = err != nil || response.Omitted; err == nil {
		r.Value = httprecord.Text(response.Status, response.Header, response.Body)
	}
	return r
}
