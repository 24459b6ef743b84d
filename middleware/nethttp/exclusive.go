package httplock

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
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
	config := newConfig(httpguard.ExclusiveConfig(), opts)
	engine, err := httpguard.NewExclusive(strategy, config.engine)
	if err != nil {
		return nil, err
	}
	g, err := newGuard(engine, key, config)
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler { return &exclusive{g.before(next), engine} }, nil
}

// exclusive is the guarded handler.
type exclusive struct {
	guard
	engine *httpguard.Exclusive
}

func (e *exclusive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The request's time begins before its body is read.
	by := httpguard.AnswerBy(r.Context())
	e.serve(w, r, func(v *visit) *Conflict {
		watched := watch(w)
		return e.engine.Do(r.Context(), httpguard.RequestOf(v.inner, v.key, by), func(ctx context.Context) httpguard.Answered {
			e.handle(ctx, watched.exposed(), v)
			silent := !watched.wrote() && !watched.failed && ctx.Err() != nil
			if silent {
				w.Header().Del("Content-Length") // of the answer that the handler did not give
			}
			return httpguard.Answered{Status: watched.status, Silent: silent, Reported: watched.failed}
		})
	})
}
