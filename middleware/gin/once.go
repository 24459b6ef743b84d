package ginlock

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Once returns a middleware that lets a request of each key take effect once: for instance one order per user. A
// second request is refused while the first is running (409 request-in-progress) and after it has succeeded (409
// already-completed), until the record expires. With [httplock.WithReplay] it gets the recorded answer instead. The record
// lasts for 24 hours unless [core.WithRetention] says otherwise. A first request that has failed does not count, see
// [core.WithFailurePolicy]; errors in c.Errors without an answer are a failure too. Once panics if client or key is nil or
// an option is invalid: [NewOnce] returns an error instead.
//
// A handler guarded twice with the same key runs: the inner guard lets the run of the outer one pass, whose options
// apply. Only [core.HoldFailures] of either guard counts for both. A handler that is reached through gin's HandleContext
// runs too.
func Once(client *core.Client, key httplock.KeyFunc, opts ...httplock.Option) gin.HandlerFunc {
	return must(NewOnce(client, key, opts...)).Wrap
}

// NewOnce is [Once] as a value, with methods for an operator. It returns an error instead of panicking.
func NewOnce(client *core.Client, key httplock.KeyFunc, opts ...httplock.Option) (*Guard, error) {
	config := newConfig(httpguard.OnceConfig(), opts)
	engine, err := httpguard.NewOnce(client, config.engine)
	if err != nil {
		return nil, err
	}
	return newOnce(engine, key, config)
}

// Idempotent returns a middleware that answers a request as it has answered an earlier one with the same
// Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header). The client's retry gets the first answer, and the
// handler runs once. The scope identifies the user of the key, for instance [httplock.ByContext] with the logged-in user: no
// request reaches another user's answer. [httplock.Unscoped] is for services all of whose clients are one.
//
// A missing or malformed key gets 400. The same key with another request gets 422 key-reused. While the first request
// is running, others get 409 request-in-progress. Records are kept for 24 hours unless [core.WithRetention] says otherwise.
// Idempotent panics if client or scope is nil or an option is invalid: [NewIdempotent] returns an error instead.
func Idempotent(client *core.Client, scope httplock.KeyFunc, opts ...httplock.Option) gin.HandlerFunc {
	return must(NewIdempotent(client, scope, opts...)).Wrap
}

// NewIdempotent is [Idempotent] as a value, with methods for an operator. It returns an error instead of panicking.
func NewIdempotent(client *core.Client, scope httplock.KeyFunc, opts ...httplock.Option) (*Guard, error) {
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

func newOnce(engine *httpguard.Once, key httplock.KeyFunc, config config) (*Guard, error) {
	g, err := newGuard(engine, key, config)
	if err != nil {
		return nil, err
	}
	return &Guard{engine.Ledger(key), (&once{g, engine}).handle}, nil
}

// once is the guard of a chain of handlers.
type once struct {
	guard
	engine *httpguard.Once
}

// handle has the chain answer into a capture, which is sent once the answer is recorded. That nothing is recovered keeps
// the stack of a panic, and covers http.ErrAbortHandler and runtime.Goexit.
func (o *once) handle(c *gin.Context) {
	// The request's time begins before its body is read.
	ctx, by := c.Request.Context(), httpguard.AnswerBy(c.Request.Context())
	o.serve(c, func(key httplock.Key) *httplock.Conflict {
		request := httpguard.RequestOf(c.Request, key, by)
		request.Pattern = patternOf(c)
		var w *captureWriter // until the answer is sent
		end := func() {}
		defer func() {
			defer end()
			if w != nil { // also if the handler, a judge or a hook has panicked
				w.abandon()
			}
		}()
		recorded, conflict := o.engine.Do(ctx, request, httpguard.Handler{
			Run: func(ctx context.Context) httplock.Handled {
				limit, record := o.engine.Capture()
				w, end = newCapture(c, limit, record)
				before := len(c.Errors)
				c.Writer = w.exposed()
				next(w.within(ctx), c)
				return w.outcome(c, len(c.Errors)-before)
			},
			Pass: func(ctx context.Context) { next(ctx, c) },
		})
		switch {
		case recorded != nil:
			replay(c, recorded)
		case w != nil && conflict == nil:
			w.send()
			w = nil
		}
		return conflict
	})
}

// replay answers with a recorded response.
func replay(c *gin.Context, r *httpguard.Response) {
	c.Abort()
	httpguard.Replay(r, c.Writer.Header())
	c.Status(r.Status)
	if len(r.Body) == 0 {
		// A status that the first chain has only set may have got a body around the guard, and gets that again.
		if !httpguard.Unbegun(r) || r.Status < http.StatusMultipleChoices {
			c.Writer.WriteHeaderNow()
		}
		return
	}
	// A writer that compresses changes the header in the first Write, so nothing sends it before that.
	_, _ = c.Writer.Write(r.Body) // nobody is left to tell of a client that does not read its answer
}
