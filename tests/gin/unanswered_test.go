package gin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUnansweredIsNotAnEmpty200: a client that waits learns that its request was not answered.
func TestUnansweredIsNotAnEmpty200(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	short := ginlock.WithLock(core.WithTTL(5*time.Second), core.WithMaxHold(time.Second))
	once := func(name string, opts ...ginlock.Option) gin.HandlerFunc {
		return ginlock.Idempotent(locks, ginlock.Constant(name), patiently(opts...)...)
	}
	hold := ginlock.WithFailurePolicy(ginlock.HoldFailures)
	exclusive := ginlock.Exclusive(locks.Mutex, ginlock.Constant("e"), short, ginlock.WithWait(patience))
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
		"released":         {[]gin.HandlerFunc{once("a", short), silent}, 503, middleware.CodeNotAnswered},
		"held":             {[]gin.HandlerFunc{once("b", short, hold), silent}, 409, middleware.CodeOutcomeUnknown},
		"exclusive":        {[]gin.HandlerFunc{exclusive, silent}, 503, middleware.CodeNotAnswered},
		"exclusive inside": {[]gin.HandlerFunc{once("c", hold), exclusive, silent}, 409, middleware.CodeOutcomeUnknown},
		"rendered": {
			[]gin.HandlerFunc{render, once("d", short, ginlock.ErrorsOnly()), silent},
			503,
			"rendered holdfast: request refused: not-answered",
		},
		"a status":            {[]gin.HandlerFunc{once("f", short), accepted}, http.StatusAccepted, ""},
		"a status, exclusive": {[]gin.HandlerFunc{exclusive, accepted}, http.StatusAccepted, ""},
	} {
		a := order(t, serve(t, router(test.chain...)), "k")
		a.want(t, test.status)
		if !strings.Contains(a.body, test.body) {
			t.Errorf("%s: body %q, want %q in it", name, a.body, test.body)
		}
	}
}
