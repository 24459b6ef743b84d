package httplock

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

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
	config := newConfig(httpguard.OnceConfig(), opts)
	engine, err := httpguard.NewOnce(client, config.engine)
	if err != nil {
		return nil, err
	}
	return newOnce(engine, key, config)
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
	config := newConfig(httpguard.IdempotentConfig(), opts)
	engine, err := httpguard.NewOnce(client, config.engine)
	if err != nil {
		return nil, err
	}
	return newOnce(engine, httpguard.ScopedKey(engine, scope), config)
}

func must[G any](guard G, err error) G {
	if err != nil {
		panic(err)
	}
	return guard
}

func newOnce(engine *httpguard.Once, key KeyFunc, config config) (*Guard, error) {
	g, err := newGuard(engine, key, config)
	if err != nil {
		return nil, err
	}
	return &Guard{engine.Ledger(key), func(next http.Handler) http.Handler { return &once{g.before(next), engine} }}, nil
}

// once is the guarded handler.
type once struct {
	guard
	engine *httpguard.Once
}

// ServeHTTP has the handler answer into a capture, which is sent once the answer is recorded. That nothing is recovered keeps
// the stack of a panic, and covers http.ErrAbortHandler and runtime.Goexit.
func (o *once) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The request's time begins before its body is read.
	by := httpguard.AnswerBy(r.Context())
	o.serve(w, r, func(v *visit) *Conflict {
		var c *captureWriter // until the answer is sent
		defer func() {
			if c != nil { // also if the handler, a judge or a hook has panicked
				c.abandon()
			}
		}()
		recorded, conflict := o.engine.Do(r.Context(), httpguard.RequestOf(v.inner, v.key, by), httpguard.Handler{
			Run: func(ctx context.Context) Handled {
				limit, record := o.engine.Capture()
				c = newCapture(w, v.inner, limit, record)
				o.handle(ctx, c.exposed(), v)
				return c.capture.Handled()
			},
			Pass: func(ctx context.Context) { o.handle(ctx, w, v) },
		})
		switch {
		case recorded != nil:
			if c != nil { // the handler has found the effect of an earlier request
				c.abandon()
				c = nil
			}
			replay(w, recorded)
		case c != nil && conflict == nil:
			c.send()
			c = nil
		}
		return conflict
	})
}
