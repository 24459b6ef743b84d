package httplock

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// Guard is a guard of [NewOnce] or [NewIdempotent] as a value. Wrap is what [Once] and [Idempotent] return. The other methods are
// for operators, and for pages that tell clients what became of their requests. They use the client, the secret, the codec and
// the retention of the guard. The zero Guard guards nothing: its methods return errors, or panic.
type Guard struct {
	ledger *httpguard.Ledger
	wrap   func(http.Handler) http.Handler
}

// Wrap returns the guarded handler. It panics if the handler is nil, and if g is the zero Guard.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	if g == nil || g.wrap == nil {
		panic("holdfast: the guard is the zero Guard: make it with NewOnce or NewIdempotent")
	}
	return g.wrap(next)
}

// Peek reads the record of the key of these parts: what its key functions find in a request, in their order. So it is a user for
// [ByContext] and [ByPrincipal], method and pattern for [ByRoute], and for Idempotent the Idempotency-Key comes last:
//
//	orders, _ := httplock.NewOnce(locks, httplock.Keys(httplock.ByRoute(), user, httplock.ByPathValue("id")))
//	record, err := orders.Peek(ctx, "POST /carts/{id}/orders", "ada", "7")
//
// [FirstOf] takes its first function, and [ByPathValue] needs [ByRoute] before it. Keys that these parts do not tell, and those of
// functions of your own that do not call the ones of this package, are for PeekKey.
//
// [core.StateNone] means that no record prevents a request from running. The Value of a completed record is the response as text,
// which [net/http.ReadResponse] reads. It is nil if there is none, or if the codec cannot decrypt it.
//
// Peek returns [ErrKeyShape] for too few or too many parts, and for a key that no request in this process has had, by the names of
// its parts. Before the first request, a wrong key has no record. Other errors are those of the key functions and of
// [core.Once.Peek].
func (g *Guard) Peek(ctx context.Context, parts ...string) (core.Record, error) {
	return g.operator().Peek(ctx, parts...)
}

// PeekKey is Peek for a key that is made without a request, of [RouteKey], [PrincipalKey], [PathKey], [NewKey], and for Idempotent
// [IdempotencyKey] last.
func (g *Guard) PeekKey(ctx context.Context, parts ...Key) (core.Record, error) {
	return g.operator().PeekKey(ctx, parts...)
}

// Records reads the records of a scope of Idempotent, the latest first, as Peek does, with the same parts but the last. They are
// listed if the guard has [core.WithQuota] or [core.HoldFailures], from its first request with that on. Otherwise Records fails, and
// so it does for the guard of Once, whose keys have no scope.
func (g *Guard) Records(ctx context.Context, scope ...string) ([]core.Record, error) {
	return g.operator().Records(ctx, scope...)
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
	return g.operator().Resolve(ctx, seen, value)
}

// Forget deletes the record, so that the next request of the key runs: the order was cancelled, or an operator has found out that
// a run of unknown outcome has not taken effect. It applies to the record as it was seen. The error is [ErrNoRecord] if no record
// prevented a request from running, or that of [core.Once.Forget]: [core.ErrChanged] if the record has changed since, and
// [core.ErrInProgress] while a request is running. For the record of a run that is stuck, see [core.Once.ForgetRunning].
func (g *Guard) Forget(ctx context.Context, seen core.Record) error {
	return g.operator().Forget(ctx, seen)
}

// operator returns the ledger, whose methods fail for the zero Guard.
func (g *Guard) operator() *httpguard.Ledger {
	if g == nil {
		return nil
	}
	return g.ledger
}

// IdempotencyKey returns the key that [Idempotent] joins to its scope for a client's Idempotency-Key, for [Join]: after the keys of
// the scope. The value is that of the header field, with or without its quotes.
func IdempotencyKey(value string) (Key, error) { return httpguard.IdempotencyKey(value) }

// Errors of a [Guard], for errors.Is.
var (
	ErrNoRecord = httpguard.ErrNoRecord
	ErrKeyShape = httpguard.ErrKeyShape
)
