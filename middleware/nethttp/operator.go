package httplock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// Errors of a [Guard], for errors.Is.
var (
	// ErrNoRecord says that there is no record of a key: no request of it has run, its record has expired, or the guard
	// makes another key of those requests.
	ErrNoRecord = errors.New("holdfast: nothing is recorded of the key")

	// ErrKeyShape refuses a key whose parts, by their names and order, are not those that the guard's key function makes.
	// Such a key would be about another request, or about none.
	ErrKeyShape = errors.New("holdfast: the key is not made of the parts of this guard's keys")
)

// Guard is a guard of [NewOnce] or [NewIdempotent] as a value. Wrap is what [Once] and [Idempotent] return. The other methods are
// for operators, and for pages that show clients what became of their requests. They use the client, the secret, the codec and
// the retention of the guard. The zero Guard guards nothing: its methods return errors, or panic.
type Guard struct{ once *once }

// Wrap returns the guarded handler. It panics if the handler is nil, and if g is the zero Guard.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	o, err := g.made()
	if err != nil {
		panic(err.Error())
	}
	return o.wrap(next, o.run)
}

// made returns the guard that a constructor has made.
func (g *Guard) made() (*once, error) {
	if g == nil || g.once == nil {
		return nil, errors.New("holdfast: the guard is the zero Guard: make it with NewOnce or NewIdempotent")
	}
	return g.once, nil
}

// Peek reads the record of the key of these parts: what its key functions find in a request, in their order. So it is a user for
// [ByContext] and [ByPrincipal], method and pattern for [ByRoute], and for Idempotent the Idempotency-Key comes last:
//
//	orders, _ := httplock.NewOnce(locks, httplock.Keys(httplock.ByRoute(), user, httplock.ByPathValue("id")))
//	record, err := orders.Peek(ctx, "POST /carts/{id}/orders", "ada", "7")
//
// [FirstOf] takes its first function, and [ByPathValue] needs [ByRoute] before it. Keys that these parts do not
// determine, and keys of functions of your own that do not call the ones of this package, are for PeekKey.
//
// [core.StateNone] means that no record prevents a request from running. The Value of a completed record is the response as text,
// which [net/http.ReadResponse] reads. It is nil if there is none, or if the codec cannot decrypt it.
//
// Peek returns [ErrKeyShape] for too few or too many parts, and for a key that no request in this process has had, by the names of
// its parts. Before the first request, a wrong key has no record. Other errors come from the key functions and from
// [core.Once.Peek].
func (g *Guard) Peek(ctx context.Context, parts ...string) (core.Record, error) {
	o, err := g.made()
	if err != nil {
		return core.Record{}, err
	}
	key, err := keyOfParts(ctx, o.key, parts)
	if err != nil {
		return core.Record{}, err
	}
	return g.PeekKey(ctx, key)
}

// PeekKey is Peek for a key that is made without a request, of [RouteKey], [PrincipalKey], [PathKey], [NewKey], and for Idempotent
// [IdempotencyKey] last.
func (g *Guard) PeekKey(ctx context.Context, parts ...Key) (core.Record, error) {
	o, err := g.made()
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

// Records reads the records of a scope of Idempotent, the latest first, as Peek does, with the same parts but the last. They are
// listed if the guard has [core.WithQuota] or [core.HoldFailures], from its first request with that on. Otherwise Records fails, and
// so it does for the guard of Once, whose keys have no scope.
func (g *Guard) Records(ctx context.Context, scope ...string) ([]core.Record, error) {
	o, err := g.made()
	if err != nil {
		return nil, err
	}
	if !o.Scoped {
		return nil, errors.New("holdfast: keys of Once have no scope: their records are not listed")
	}
	if !o.listed() {
		return nil, errors.New("holdfast: records are not listed: use core.WithQuota or core.WithFailurePolicy(core.HoldFailures)")
	}
	key, err := keyOfParts(ctx, o.key, append(slices.Clip(scope), "any"))
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

// Resolve records that the request has taken effect: an operator has found out how a run of unknown outcome ended, or has done by
// hand what it failed to do. From then on, until the record expires, requests of the key get the response if the guard replays,
// and 409 already-completed otherwise. It applies to the record as it was seen, by Peek or Records.
//
// The value is the response as text: a status line, header fields, an empty line, and the body. Lines may end with LF or CRLF. It
// needs a status from 200 on, a Content-Type if there is a body, and no fields of one client or connection, such as Set-Cookie.
// With nil there is no response, and requests get 409 already-completed.
//
//	err := guard.Resolve(ctx, seen, []byte("HTTP/1.1 201 Created\nLocation: /orders/7\n\n"))
//
// Errors:
//
//   - [ErrNoRecord] if no request of the key has run, or none has left a record. A released one leaves none behind a
//     quota.
//   - [core.ErrChanged] if the record has changed since it was seen, [core.ErrInProgress] while a request is running, and
//     [core.ErrCompleted] if one has completed before. The record is not changed.
//   - Those of [core.Once.Resolve].
func (g *Guard) Resolve(ctx context.Context, seen core.Record, value []byte) error {
	o, hash, err := g.seen(seen)
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

// Forget deletes the record, so that the next request of the key runs: the order was cancelled, or an operator has found out that
// a run of unknown outcome has not taken effect. It applies to the record as it was seen. The error is [ErrNoRecord] if no record
// prevented a request from running, or the error of [core.Once.Forget]: [core.ErrChanged] if the record has changed since, and
// [core.ErrInProgress] while a request is running. For the record of a run that is stuck, see [core.Once.ForgetRunning].
func (g *Guard) Forget(ctx context.Context, seen core.Record) error {
	o, _, err := g.seen(seen)
	if err != nil {
		return err
	}
	had, err := o.records.Forget(ctx, seen)
	if err == nil && !had {
		return ErrNoRecord
	}
	return err
}

// seen returns the guard, and the hash of the key of a record that was read before.
func (g *Guard) seen(r core.Record) (o *once, hash string, err error) {
	if o, err = g.made(); err != nil {
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
func (o *once) seal(text []byte, hash string) ([]byte, error) {
	written, err := httprecord.Read(bytes.NewReader(text), o.MaxValue)
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
func (o *once) nameOf(parts []Key) (string, error) {
	key, err := Join(parts...)
	if err != nil {
		return "", err
	}
	if err := o.shapes.check(key, o.Scoped); err != nil {
		return "", err
	}
	return key.Name(o.KeySecret), nil
}

// recordOf returns the record of that name.
func (o *once) recordOf(name string) *core.Once {
	ask := guards.Ask{Name: name}
	if o.RetentionUntil != nil {
		ask.Retention = o.untilThen(time.Now())
	}
	return o.records.Of(ask)
}

// read returns a record with its response as text in place of the value. There is none if the codec cannot decrypt it.
func (o *once) read(r core.Record) core.Record {
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

// mostShapes bounds what is remembered. A key function that makes more of them puts values into names, and is not checked.
const mostShapes = 16

// shapes are the names of parts, in order, of the keys that a guard has seen. A key function like [FirstOf] makes several.
// It is safe for concurrent use.
type shapes struct{ seen atomic.Pointer[[][]string] }

// learn remembers the shape of a key.
func (s *shapes) learn(key Key) {
	for {
		seen := s.seen.Load()
		if s.has(key) || seen != nil && len(*seen) >= mostShapes {
			return
		}
		var more [][]string
		if seen != nil {
			more = slices.Clone(*seen)
		}
		more = append(more, key.names())
		if s.seen.CompareAndSwap(seen, &more) {
			return
		}
	}
}

// has reports whether a key of the same shape was seen.
func (s *shapes) has(key Key) bool {
	seen := s.seen.Load()
	return seen != nil && slices.ContainsFunc(*seen, func(names []string) bool {
		return slices.EqualFunc(names, key.parts, func(name string, p part) bool { return name == p.name })
	})
}

// check refuses a key of a shape that no request had. Keys of a scope end with an Idempotency-Key, whether or not one was
// seen.
func (s *shapes) check(key Key, scoped bool) error {
	if last := len(key.parts) - 1; scoped && (last < 1 || key.parts[last].name != idempotencyKey) {
		return fmt.Errorf("%w: %s, want a scope and %s", ErrKeyShape, quoted(key.names()), idempotencyKey)
	}
	seen := s.seen.Load()
	if seen == nil || len(*seen) >= mostShapes || s.has(key) {
		return nil
	}
	var known []string
	for _, names := range *seen {
		known = append(known, quoted(names))
	}
	return fmt.Errorf("%w: %s, want %s", ErrKeyShape, quoted(key.names()), strings.Join(known, " or "))
}

// names returns the names of the parts in order.
func (k Key) names() []string {
	names := make([]string, len(k.parts))
	for i, p := range k.parts {
		names[i] = p.name
	}
	return names
}

func quoted(names []string) string { return "(" + strings.Join(names, ", ") + ")" }
