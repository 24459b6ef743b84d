package ginlock

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// ContextKey is the key in gin's own store for the context of a guarded request's run, for [Degraded], [TokenFrom] and
// the like. The value is nil once the guard has ended.
const ContextKey = "github.com/holdfast-go/holdfast/middleware/gin"

// Degraded returns true if ctx is that of a request which runs unguarded: see [FailOpen]. ctx may be the context of
// the request or the *gin.Context.
func Degraded(ctx context.Context) bool { return middleware.Degraded(run(ctx)) }

// TokenFrom returns the fencing token of the innermost guard around a request. It returns false if there is none. ctx
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
