package gin_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUnansweredIsNotAnEmpty200: a client that waits learns that its request was not answered.
func TestUnansweredIsNotAnEmpty200(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	ttl, short := core.WithTTL(5*time.Second), core.WithMaxHold(time.Second)
	once := func(name string, opts ...httplock.Option) gin.HandlerFunc {
		return ginlock.Idempotent(locks, httplock.Constant(name), patiently(opts...)...)
	}
	hold := core.WithFailurePolicy(core.HoldFailures)
	exclusive := ginlock.Exclusive(locks.Mutex, httplock.Constant("e"), ttl, short, core.WithWait(patience))
	silent := func(c *gin.Context) {
		c.Header("Content-Length", "3")
		<-c.Request.Context().Done()
	}
	accepted := func(c *gin.Context) {
		c.Status(http.StatusAccepted)
		<-c.Request.Context().Done()
	}
	render := func(c *gin.Context) {
		if c.Next(); !c.Writer.Written() && len(c.Errors) > 0 {
			c.String(-1, "rendered "+c.Errors.Last().Error())
		}
	}
	for name, test := range map[string]struct {
		chain  []gin.HandlerFunc
		status int
		body   string // what it contains
	}{
		"released":         {[]gin.HandlerFunc{once("a", ttl, short), silent}, 503, httplock.CodeNotAnswered},
		"held":             {[]gin.HandlerFunc{once("b", ttl, short, hold), silent}, 409, httplock.CodeOutcomeUnknown},
		"exclusive":        {[]gin.HandlerFunc{exclusive, silent}, 503, httplock.CodeNotAnswered},
		"exclusive inside": {[]gin.HandlerFunc{once("c", hold), exclusive, silent}, 409, httplock.CodeOutcomeUnknown},
		"rendered": {
			[]gin.HandlerFunc{render, once("d", ttl, short, ginlock.ErrorsOnly()), silent},
			503,
			"rendered holdfast: request refused: not-answered",
		},
		"a status":            {[]gin.HandlerFunc{once("f", ttl, short), accepted}, http.StatusAccepted, ""},
		"a status, exclusive": {[]gin.HandlerFunc{exclusive, accepted}, http.StatusAccepted, ""},
	} {
		a := order(t, serve(t, router(test.chain...)), "k")
		a.want(t, test.status)
		if !strings.Contains(a.body, test.body) {
			t.Errorf("%s: body %q, want %q in it", name, a.body, test.body)
		}
	}
}

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
		"nothing":        {func(*gin.Context, *httplock.Conflict) {}, http.StatusBadRequest, httplock.CodeKeyRequired},
		"another status": {func(_ *gin.Context, c *httplock.Conflict) { c.Status = 418 }, 418, httplock.CodeKeyRequired},
		"an error":       {func(c *gin.Context, _ *httplock.Conflict) { _ = c.Error(errors.New("mine")) }, http.StatusBadRequest, "rendered"},
		"early hints":    {func(c *gin.Context, _ *httplock.Conflict) { c.Writer.WriteHeader(http.StatusEarlyHints) }, http.StatusBadRequest, httplock.CodeKeyRequired},
		"status 204":     {func(c *gin.Context, _ *httplock.Conflict) { c.Status(http.StatusNoContent) }, http.StatusNoContent, ""},
		"status 404":     {func(c *gin.Context, _ *httplock.Conflict) { c.Status(http.StatusNotFound) }, http.StatusNotFound, "rendered"},
		"written 200":    {func(c *gin.Context, _ *httplock.Conflict) { c.Writer.WriteHeaderNow() }, http.StatusOK, ""},
	} {
		guard := ginlock.Exclusive(locks.Mutex, httplock.ByHeader("X-Cart"), ginlock.WithRefusalHandler(test.handler))
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
	guard := ginlock.Exclusive(locks.Mutex, httplock.ByHeader("X-Cart"), ginlock.ErrorsOnly())
	front := func(c *gin.Context) { c.Status(http.StatusBadRequest) }
	a := order(t, serve(t, router(front, guard)), "k")
	a.want(t, http.StatusBadRequest)
	if a.body != "" {
		t.Errorf("body %q, want none", a.body)
	}
}
