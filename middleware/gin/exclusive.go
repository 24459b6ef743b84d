package ginlock

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// Exclusive returns a middleware that prevents two requests of one key from running at the same time. The strategy
// makes the lock, for instance locks.Mutex; key identifies what must not run at the same time. With locks.Limit(n), at
// most n requests of a key run at a time. Exclusive panics if one of them is nil or an option is invalid:
// [NewExclusive] returns an error instead.
//
// A handler guarded twice with the same key runs: the inner guard enters the lock of the outer one. So does a handler
// that is reached through gin's HandleContext.
func Exclusive(strategy core.Strategy, key KeyFunc, opts ...Option) gin.HandlerFunc {
	return must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (gin.HandlerFunc, error) {
	config := newConfig(middleware.DefaultConfig(), opts)
	engine, err := middleware.NewExclusive(strategy, config.engine)
	if err != nil {
		return nil, err
	}
	g, err := newGuard(engine, key, config)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		// The request's time begins before its body is read.
		ctx, by := c.Request.Context(), middleware.AnswerBy(c.Request.Context())
		g.serve(c, func(key Key) *Conflict {
			return engine.Do(ctx, middleware.RequestOf(c.Request, key, by), func(ctx context.Context) { next(ctx, c) })
		})
	}, nil
}
