package ginlock

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Exclusive returns a middleware that prevents two requests of one key from running at the same time. The strategy
// makes the lock, for instance locks.Mutex; key identifies what must not run at the same time. With locks.Limit(n), at
// most n requests of a key run at a time. Exclusive panics if one of them is nil or an option is invalid:
// [NewExclusive] returns an error instead.
//
// A handler guarded twice with the same key runs: the inner guard enters the lock of the outer one. So does a handler
// that is reached through gin's HandleContext.
//
// A chain that returns without an answer after its context has ended is answered for: 503 not-answered, in place of the
// empty 200 of gin. A status that is set and an error in c.Errors count as an answer.
func Exclusive(strategy core.Strategy, key httplock.KeyFunc, opts ...httplock.Option) gin.HandlerFunc {
	return must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key httplock.KeyFunc, opts ...httplock.Option) (gin.HandlerFunc, error) {
	config := newConfig(httpguard.ExclusiveConfig(), opts)
	engine, err := httpguard.NewExclusive(strategy, config.engine)
	if err != nil {
		return nil, err
	}
	g, err := newGuard(engine, key, config)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		// The request's time begins before its body is read.
		ctx, by := c.Request.Context(), httpguard.AnswerBy(c.Request.Context())
		g.serve(c, func(key httplock.Key) *httplock.Conflict {
			answer, before := watch(c), len(c.Errors)
			status := answer.status()
			request := httpguard.RequestOf(c.Request, key, by)
			request.Pattern = patternOf(c)
			conflict := engine.Do(ctx, request, func(ctx context.Context) httpguard.Answered {
				next(ctx, c)
				// A status or an error is for gin or a renderer around the guard to send.
				silent := ctx.Err() != nil && !answer.begun() && answer.status() == status && len(c.Errors) == before
				if silent {
					answer.real.Header().Del("Content-Length") // of the answer that the chain did not give
				}
				return httpguard.Answered{Status: answer.status(), Silent: silent, Reported: !answer.begun() && len(c.Errors) > before}
			})
			c.Writer = answer.real
			return conflict
		})
	}, nil
}
