package ginlock

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// ContextKey is where a guarded request has the context of its run in gin's own store, for [Degraded],
// [TokenFrom] and the like. It is nil there once the guard is done.
const ContextKey = "github.com/holdfast-go/holdfast/middleware/gin"

// Degraded reports whether ctx is that of a request which runs unguarded: see [FailOpen]. It may be the context of
// the request or the *gin.Context.
func Degraded(ctx context.Context) bool { return middleware.Degraded(run(ctx)) }

// TokenFrom returns the fencing token of the innermost guard around a request, and whether there is one. ctx
// may be the context of the request or the *gin.Context, for which [core.TokenFrom] works only with gin's
// ContextWithFallback.
func TokenFrom(ctx context.Context) (token int64, ok bool) { return core.TokenFrom(run(ctx)) }

// run returns the context that knows the facts. A *gin.Context does not pass on what its request holds, unless
// ContextWithFallback is set, but it does know its own store.
func run(ctx context.Context) context.Context {
	if run, ok := ctx.Value(ContextKey).(context.Context); ok {
		return run
	}
	return ctx
}
