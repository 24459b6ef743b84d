package gin_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSilentRefusalHandler: a refusal that its handler does not answer is not gin's empty 200, with a renderer or without.
func TestSilentRefusalHandler(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	render := func(c *gin.Context) {
		if c.Next(); !c.Writer.Written() && len(c.Errors) > 0 {
			c.String(-1, "rendered")
		}
	}
	for name, test := range map[string]struct {
		handler ginlock.RefusalHandler
		status  int
		body    string // what it contains
	}{
		"nothing":        {func(*gin.Context, *ginlock.Conflict) {}, http.StatusBadRequest, middleware.CodeKeyRequired},
		"another status": {func(_ *gin.Context, c *ginlock.Conflict) { c.Status = 418 }, 418, middleware.CodeKeyRequired},
		"an error":       {func(c *gin.Context, _ *ginlock.Conflict) { _ = c.Error(errors.New("mine")) }, http.StatusBadRequest, "rendered"},
		"early hints":    {func(c *gin.Context, _ *ginlock.Conflict) { c.Writer.WriteHeader(http.StatusEarlyHints) }, http.StatusBadRequest, middleware.CodeKeyRequired},
		"status 204":     {func(c *gin.Context, _ *ginlock.Conflict) { c.Status(http.StatusNoContent) }, http.StatusNoContent, ""},
		"status 404":     {func(c *gin.Context, _ *ginlock.Conflict) { c.Status(http.StatusNotFound) }, http.StatusNotFound, "rendered"},
		"written 200":    {func(c *gin.Context, _ *ginlock.Conflict) { c.Writer.WriteHeaderNow() }, http.StatusOK, ""},
	} {
		guard := ginlock.Exclusive(locks.Mutex, ginlock.ByHeader("X-Cart"), ginlock.WithRefusalHandler(test.handler))
		never := func(*gin.Context) { t.Error("the handler ran") }
		a := order(t, serve(t, router(render, guard, never)), "k")
		a.want(t, test.status)
		if !strings.Contains(a.body, test.body) {
			t.Errorf("%s: body %q, want %q in it", name, a.body, test.body)
		}
	}
}

// TestErrorsOnlyKeepsAStatus that a handler in front has set before.
func TestErrorsOnlyKeepsAStatus(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, ginlock.ByHeader("X-Cart"), ginlock.ErrorsOnly())
	front := func(c *gin.Context) { c.Status(http.StatusBadRequest) }
	a := order(t, serve(t, router(front, guard)), "k")
	a.want(t, http.StatusBadRequest)
	if a.body != "" {
		t.Errorf("body %q, want none", a.body)
	}
}
