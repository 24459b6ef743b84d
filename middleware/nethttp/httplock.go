package httplock

import (
	"net/http"

	"github.com/holdfast-go/holdfast/core"
)

// Exclusive returns a middleware that prevents two requests of one key from running at the same time. The strategy
// makes the lock, for instance locks.Mutex; key identifies what must not run at the same time. With locks.Limit(n), at
// most n requests of a key run at a time. Exclusive panics if one of them is nil or an option is invalid:
// [NewExclusive] returns an error instead.
//
// A handler guarded twice with the same key runs: the inner guard enters the lock of the outer one.
//
// A handler that returns without an answer after its context has ended is answered for: 503 not-answered, in place of the
// empty 200 of the server. For that the handler gets a writer around the server's, with the same optional methods.
func Exclusive(strategy core.Strategy, key KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	return must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (func(http.Handler) http.Handler, error) {
	e, err := newExclusive(strategy, key, exclusiveSettings(opts...))
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler { return e.wrap(next, e.run) }, nil
}

// Once returns a middleware that lets a request of each key take effect once: for instance one order per user. A
// second request is refused while the first is running (409 request-in-progress) and after it has succeeded (409
// already-completed), until the record expires. With [WithReplay] it gets the recorded answer instead. The record
// lasts for 24 hours unless [core.WithRetention] says otherwise. A first request that has failed does not count, see
// [core.WithFailurePolicy]. Once panics if client or key is nil or an option is invalid: [NewOnce] returns an error
// instead.
//
// A handler guarded twice with the same key runs: the inner guard lets the run of the outer one pass, whose options
// apply. Only [core.HoldFailures] of either guard counts for both.
func Once(client *core.Client, key KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	return must(NewOnce(client, key, opts...)).Wrap
}

// NewOnce is [Once] as a value, with methods for an operator. It returns an error instead of panicking.
func NewOnce(client *core.Client, key KeyFunc, opts ...Option) (*Guard, error) {
	return newGuardOf(newOnce(client, key, onceSettings(opts...)))
}

// Idempotent returns a middleware that answers a request as it has answered an earlier one with the same
// Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header). The client's retry gets the first answer, and the
// handler runs once. The scope identifies the user of the key, for instance [ByContext] with the logged-in user: no
// request reaches another user's answer. [Unscoped] is for services all of whose clients are one.
//
// A missing or malformed key gets 400. The same key with another request gets 422 key-reused. While the first request
// is running, others get 409 request-in-progress. Records are kept for 24 hours unless [core.WithRetention] says otherwise.
// Idempotent panics if client or scope is nil or an option is invalid: [NewIdempotent] returns an error instead.
func Idempotent(client *core.Client, scope KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	return must(NewIdempotent(client, scope, opts...)).Wrap
}

// NewIdempotent is [Idempotent] as a value, with methods for an operator. It returns an error instead of panicking.
func NewIdempotent(client *core.Client, scope KeyFunc, opts ...Option) (*Guard, error) {
	return newGuardOf(newOnce(client, scope, idempotentSettings(opts...)))
}

func newGuardOf(o *once, err error) (*Guard, error) {
	if err != nil {
		return nil, err
	}
	return &Guard{o}, nil
}

func must[G any](guard G, err error) G {
	if err != nil {
		panic(err)
	}
	return guard
}
