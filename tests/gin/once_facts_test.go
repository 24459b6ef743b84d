package gin_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// contexts are those in which a handler may look for the facts.
func contexts(c *gin.Context) map[string]context.Context {
	derived := context.WithValue(context.Context(c), userKey{}, "ada")
	return map[string]context.Context{
		"gin": c, "derived": derived, "copy": c.Copy(), "request": c.Request.Context(),
	}
}

func TestFactsOfARun(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for fallback, name := range map[bool]string{true: "with fallback", false: "without"} {
		for kind, guard := range recording(locks) {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				attempt := 0
				check := func(c *gin.Context) {
					attempt++
					want, _ := core.TokenFrom(c.Request.Context())
					for which, ctx := range contexts(c) {
						token, _ := core.TokenFrom(ctx)
						if (fallback || which == "request") && (token != want || token <= 0) || httplock.Degraded(ctx) {
							t.Errorf("%s: token %d, want %d; degraded %v", which, token, want, httplock.Degraded(ctx))
						}
						if n, hash := httpkit.Attempt(ctx), core.KeyHash(ctx); n != attempt || len(hash) != 43 {
							t.Errorf("%s: attempt %d, want %d; hash %q", which, n, attempt, hash)
						}
					}
				}
				outside := func(c *gin.Context) {
					c.Next()
					if n, hash := httpkit.Attempt(c), core.KeyHash(c); n != 0 || hash != "" {
						t.Errorf("attempt %d, hash %q outside the guard", n, hash)
					}
				}
				engine := router(outside, guard, check, failing(abortWith(http.StatusServiceUnavailable)))
				engine.ContextWithFallback = fallback
				srv := serve(t, engine)
				order(t, srv, "k").wantRun(t, http.StatusServiceUnavailable)
				order(t, srv, "k").wantRun(t, http.StatusCreated)
			})
		}
	}
}

func TestFactsWithoutRecord(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	guards := recording(newLocks(t, srv.Client()), httplock.FailOpen(), httplock.WithAskTimeout(time.Second))
	srv.Kill()
	t.Cleanup(srv.Restart)
	for kind, guard := range guards {
		site := serve(t, router(guard, func(c *gin.Context) {
			for which, ctx := range contexts(c) {
				_, locked := core.TokenFrom(ctx)
				if !httplock.Degraded(ctx) || locked || httpkit.Attempt(ctx) != 0 {
					t.Errorf("%s, %s: degraded %v, token %v, attempt %d",
						kind, which, httplock.Degraded(ctx), locked, httpkit.Attempt(ctx))
				}
			}
			c.String(http.StatusCreated, "created")
		}))
		for _, key := range []string{"k", "l"} {
			order(t, site, key).wantRun(t, http.StatusCreated)
		}
	}
}

// The handler's own word counts, in whichever context it is said and however the handler ends.
func TestHandlerDisposition(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	failure := func(c *gin.Context) { _ = c.Error(errDatabase) }
	for name, test := range map[string]struct {
		word func(context.Context) error
		end  gin.HandlerFunc
		next string // what the next request is told
	}{
		"complete, error":   {core.Complete, failure, httplock.CodeAlreadyCompleted},
		"complete, panic":   {core.Complete, writeAndPanic, httplock.CodeAlreadyCompleted},
		"release, answered": {core.Release, func(c *gin.Context) { c.String(http.StatusOK, "no") }, ""},
		"hold, answered": {
			holdIt, func(c *gin.Context) { c.String(http.StatusOK, "no") }, httplock.CodeOutcomeUnknown,
		},
	} {
		for _, which := range []string{"gin", "derived", "copy", "request"} {
			t.Run(name+", "+which, func(t *testing.T) {
				t.Parallel()
				guard := ginlock.Idempotent(locks, httplock.ByHeader("X-User"), patiently()...)
				srv := serve(t, router(render, recovery(), guard, failing(func(c *gin.Context) {
					if err := test.word(contexts(c)[which]); err != nil {
						t.Error(err)
					}
					test.end(c)
				})))
				order(t, srv, "k")
				if test.next == "" {
					order(t, srv, "k").wantRun(t, http.StatusCreated)
					return
				}
				order(t, srv, "k").wantRefusal(t, http.StatusConflict, test.next)
			})
		}
	}
}

// An answer to a failure that has come after the effect is replayed as any other.
func TestCompletedFailureIsReplayed(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for kind, guard := range recording(locks) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, router(guard, failing(func(c *gin.Context) {
				if err := core.Complete(c); err != nil {
					t.Error(err)
				}
				c.String(http.StatusInternalServerError, "the mail was not sent")
			})))
			order(t, srv, "k").wantRun(t, http.StatusInternalServerError)
			order(t, srv, "k").wantReplay(t, http.StatusInternalServerError, "the mail was not sent")
		})
	}
}

func TestDispositionWithoutGuard(t *testing.T) {
	t.Parallel()
	srv := serve(t, router(func(c *gin.Context) {
		for _, word := range []func(context.Context) error{core.Complete, core.Release, holdIt} {
			if err := word(c); !errors.Is(err, core.ErrNotGuarded) {
				t.Errorf("error %v, want ErrNotGuarded", err)
			}
		}
	}))
	order(t, srv, "k").want(t, http.StatusOK)
}

// Around each of two guards, request, writer and facts are the same as before, however the run ends.
func TestNestedRecordsGiveBack(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	unchanged := func(c *gin.Context) {
		request, writer, attempt := c.Request, c.Writer, httpkit.Attempt(c)
		defer func() {
			if c.Request != request || c.Writer != writer || httpkit.Attempt(c) != attempt {
				t.Errorf("request restored %v, writer %v; attempt %d, before %d",
					c.Request == request, c.Writer == writer, httpkit.Attempt(c), attempt)
			}
			if err := c.Request.Context().Err(); err != nil {
				t.Errorf("the context of the request: %v", err)
			}
		}()
		c.Next()
	}
	replace := func(c *gin.Context) {
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), userKey{}, "ada"))
		c.Writer = other{c.Writer}
	}
	for name, fail := range map[string]gin.HandlerFunc{
		"reported": func(c *gin.Context) { _ = c.Error(errDatabase) }, "panicked": writeAndPanic,
		"released": abortWith(http.StatusServiceUnavailable),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := ginlock.Once(locks, httplock.ByHeader("X-User"), patiently(httplock.WithReplay())...)
			inner := ginlock.Idempotent(locks, httplock.ByHeader("X-User"), patiently()...)
			srv := serve(t, router(recovery(), unchanged, outer, unchanged, inner, replace, failing(fail)))
			order(t, srv, "k")
			order(t, srv, "k").wantRun(t, http.StatusCreated)
			order(t, srv, "k").wantReplay(t, http.StatusCreated, "created")
		})
	}
}

// holdIt is [core.Hold] with a reason.
func holdIt(ctx context.Context) error { return core.Hold(ctx, "the handler says so") }
