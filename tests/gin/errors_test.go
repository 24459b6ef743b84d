package gin_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestConflictIsInErrors(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	hold(t, guard)
	outer := func(c *gin.Context) {
		c.Next()
		public := c.Errors.ByType(gin.ErrorTypePublic)
		if len(c.Errors) != 1 || len(public) != 1 || !c.IsAborted() {
			t.Errorf("errors %v, %d of them public, aborted %v", c.Errors, len(public), c.IsAborted())
			return
		}
		var conflict *httplock.Conflict
		if !errors.As(public[0], &conflict) || conflict.Code != httplock.CodeLockConflict {
			t.Errorf("the error is %v", public[0])
			return
		}
		if !errors.Is(public[0], core.ErrNotAcquired) || !strings.Contains(conflict.Error(), conflict.Cause.Error()) {
			t.Errorf("the cause is not to be found: %v", conflict)
		}
		if text := public[0].Error(); text != "holdfast: request refused: lock-conflict" {
			t.Errorf("the public text is %q", text)
		}
	}
	srv := serve(t, router(outer, guard, func(*gin.Context) { t.Error("the handler ran") }))
	a := post(t.Context(), srv, "ada", "7")
	a.want(t, http.StatusConflict)
	a.problem(t)
}

func TestErrorsOnly(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried, ginlock.ErrorsOnly())
	hold(t, guard)
	render := func(c *gin.Context) {
		c.Next()
		if c.Writer.Written() || len(c.Errors) == 0 {
			t.Errorf("written %v, errors %v", c.Writer.Written(), c.Errors)
		}
		c.JSON(-1, gin.H{"refused": c.Errors.ByType(gin.ErrorTypePublic).JSON()})
	}
	never := func(*gin.Context) { t.Error("the handler ran") }

	a := post(t.Context(), serve(t, router(guard, never)), "ada", "7")
	a.want(t, http.StatusConflict)
	if a.body != "" {
		t.Errorf("without a renderer the body is %q", a.body)
	}

	a = post(t.Context(), serve(t, router(render, guard, never)), "ada", "7")
	a.want(t, http.StatusConflict)
	var body struct{ Refused problem }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Fatal(err)
	}
	if p := body.Refused; p.Code != "lock-conflict" || p.Status != http.StatusConflict || p.RetryAfter <= 0 {
		t.Errorf("rendered %s", a.body)
	}
}

// A handler's own errors are none of the guard's business, and its lock is free afterwards.
func TestErrorsOfTheHandlerPass(t *testing.T) {
	t.Parallel()
	watch, failure := newWatch(), errors.New("the database is away")
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	render := func(c *gin.Context) {
		c.Next()
		if len(c.Errors) != 1 || !errors.Is(c.Errors.Last(), failure) || c.Writer.Written() {
			t.Errorf("errors %v, written %v", c.Errors, c.Writer.Written())
		}
		c.String(http.StatusBadGateway, "sorry")
	}
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
	srv := serve(t, router(render, guard, func(c *gin.Context) { _ = c.Error(failure) }))
	post(t.Context(), srv, "ada", "7").want(t, http.StatusBadGateway)
	awaitFree(t, locks, receive(t, watch.acquired, "the hook"))
}

// What comes after a guard in the chain does not run either.
func TestRefusalAborts(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	none := func(*http.Request) (httplock.Key, error) { return httplock.Key{}, httplock.ErrScopeRequired }
	never := func(c *gin.Context) { t.Error("the chain went on") }
	srv := serve(t, router(ginlock.Exclusive(locks.Mutex, none), never, never))
	post(t.Context(), srv, "ada", "7").want(t, http.StatusUnauthorized)
}
