package ginlock

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// Exclusive returns a middleware that lets no two requests of one key run at the same time. The strategy makes
// the lock, locks.Mutex for instance; key tells what must not run at the same time. Panics if one of them is
// nil or an option is invalid: [NewExclusive] returns that as an error.
//
// A handler guarded twice with the same key runs: the inner guard enters the lock of the outer one. So does one
// that is reached through gin's HandleContext.
func Exclusive(strategy core.Strategy, key KeyFunc, opts ...Option) gin.HandlerFunc {
	guard, err := NewExclusive(strategy, key, opts...)
	if err != nil {
		panic(err)
	}
	return guard
}

// NewExclusive is [Exclusive] for those who get their settings at run time: it returns an error instead of
// panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (gin.HandlerFunc, error) {
	config := newConfig(opts)
	engine, err := middleware.NewExclusive(strategy, config.engine)
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return nil, errors.New("holdfast: the key function is nil: a guard needs to know what to tell apart")
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	return (&exclusive{engine: engine, key: key, skip: config.skip, refuse: config.refuse}).handle, nil
}

// exclusive is the guard of a chain of handlers.
type exclusive struct {
	engine *middleware.Exclusive
	key    KeyFunc
	skip   func(*gin.Context) bool
	refuse ConflictHandler
}

func (e *exclusive) handle(c *gin.Context) {
	if !e.engine.Guards(c.Request.Method) || e.skip(c) {
		return // and gin calls what comes next
	}
	if conflict := e.serve(c); conflict != nil {
		refuse(c, conflict, e.refuse)
	}
}

// serve runs the rest of the chain under the lock or returns why not.
func (e *exclusive) serve(c *gin.Context) *Conflict {
	ctx := c.Request.Context()
	answerBy := middleware.AnswerBy(ctx)
	key, err := e.key(c)
	if err != nil {
		return e.engine.Refuse(ctx, err)
	}
	limit, _ := e.engine.BodyLimit()
	body, err := buffer(c, limit)
	if err != nil {
		return e.engine.Refuse(ctx, err)
	}
	return e.engine.Do(ctx, middleware.Request{Key: key, AnswerBy: answerBy, Header: c.Request.Header}, func(ctx context.Context) { next(ctx, c, body) })
}
