package ginlock

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	"github.com/holdfast-go/holdfast/middleware/internal/request"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// engine is what all engines have.
type engine interface {
	Guards(method string) bool
	BufferRequest(r *http.Request, key httplock.Key) error
	Admit(r *http.Request) (release func())
	Passes(err error) bool
	Refuse(ctx context.Context, label string, err error) *httplock.Conflict
}

// guard is what all guards of a chain have in common.
type guard struct {
	engine engine
	key    httplock.KeyFunc
	refuse RefusalHandler
}

// newGuard fails if the key function is nil or an option is invalid.
func newGuard(e engine, key httplock.KeyFunc, config config) (guard, error) {
	if key == nil {
		return guard{}, errors.New("holdfast: the key function is nil: a guard needs a key")
	}
	return guard{engine: e, key: key, refuse: config.refuse}, config.check()
}

// serve lets a request pass, has run call the rest of the chain, or refuses the request.
func (g guard) serve(c *gin.Context, run func(key httplock.Key) *httplock.Conflict) {
	if !g.engine.Guards(c.Request.Method) {
		return // and gin calls what comes next
	}
	if conflict := g.visit(c, run); conflict != nil {
		refuse(c, conflict, g.refuse)
	}
}

// visit calls the rest of the chain, or returns why not. However that ends, the middlewares around the guard find
// their own request and writer again: the context of the run has ended by then.
func (g guard) visit(c *gin.Context, run func(key httplock.Key) *httplock.Conflict) *httplock.Conflict {
	outer, writer := c.Request, c.Writer
	defer func() {
		request.GiveBack(outer, c.Request)
		c.Request, c.Writer = outer, writer
	}()
	ctx := outer.Context()
	c.Request = outer.WithContext(ctx) // a copy, whose body may be replaced
	restoreBody(c)
	defer g.engine.Admit(c.Request)()
	aborted, answer := c.IsAborted(), watch(c)
	key, err := keyOf(c, g.key)
	if err == nil {
		err = g.engine.BufferRequest(c.Request, key)
	}
	c.Writer = writer
	if !aborted && c.IsAborted() && answer.begun() {
		return nil // what limits the body has answered while it was read, as gin-contrib/size does
	}
	c.Request.Trailer = outer.Trailer // where net/http has put trailers that were not announced
	switch {
	case err == nil:
		return run(key)
	case g.engine.Passes(err):
		c.Next()
		return nil
	}
	return g.engine.Refuse(ctx, httpguard.Label(c.Request.Method, patternOf(c)), err)
}

// next calls the rest of the chain with that context.
func next(ctx context.Context, c *gin.Context) {
	outer, _ := c.Get(seal.ContextKey) // of a guard around this one
	defer c.Set(seal.ContextKey, outer)
	c.Request = c.Request.WithContext(ctx)
	c.Set(seal.ContextKey, ctx)
	c.Next()
}
