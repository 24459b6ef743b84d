package httplock

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// Exclusive returns a middleware that lets no two requests of one key run at the same time. The strategy makes
// the lock, locks.Mutex for instance; key tells what must not run at the same time. Panics if one of them is
// nil or an option is invalid: [NewExclusive] returns that as an error.
//
// A handler guarded twice with the same key runs: the inner guard enters the lock of the outer one.
func Exclusive(strategy core.Strategy, key KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	return must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for those who get their settings at run time: it returns an error instead of
// panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (func(http.Handler) http.Handler, error) {
	config := newConfig(middleware.DefaultConfig(), opts)
	engine, err := middleware.NewExclusive(strategy, config.engine)
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
	engine *middleware.Exclusive
}

func (e *exclusive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The request's time begins before its body is read.
	by := middleware.AnswerBy(r.Context())
	e.serve(w, r, func(v *visit) *Conflict {
		return e.engine.Do(r.Context(), middleware.RequestOf(v.inner, v.key, by), func(ctx context.Context) { e.handle(ctx, w, v) })
	})
}
