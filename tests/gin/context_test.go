package gin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// What a middleware inside the guard puts in place of request and writer does not reach those outside.
func TestOuterMiddlewaresGetTheirOwnBack(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for name, test := range map[string]struct {
		outside, inside gin.HandlerFunc
		end             func()
		status          int
	}{
		"return":           {nextOnly, nextOnly, func() {}, http.StatusOK},
		"recovery outside": {recovery(), nextOnly, func() { panic("handler") }, http.StatusInternalServerError},
		"recovery inside":  {nextOnly, recovery(), func() { panic("handler") }, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watch := newWatch()
			locks := newLocks(t, rdb, watch.hooks())
			outer := func(c *gin.Context) {
				request, writer := c.Request, c.Writer
				c.Next()
				if c.Request != request || c.Writer != writer {
					t.Errorf("request restored %v, writer restored %v", c.Request == request, c.Writer == writer)
				}
				if err := c.Request.Context().Err(); err != nil {
					t.Errorf("the context of the request: %v", err)
				}
				if _, locked := core.TokenFrom(c.Request.Context()); locked {
					t.Error("a fencing token outside the guard")
				}
				if c.Writer.Status() != test.status {
					t.Errorf("status %d seen outside, want %d", c.Writer.Status(), test.status)
				}
			}
			guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
			replace := func(c *gin.Context) {
				c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), userKey{}, "ada"))
				c.Writer = other{c.Writer}
				test.end()
			}
			a := post(t.Context(), serve(t, router(outer, test.outside, guard, test.inside, replace)), "ada", name)
			a.want(t, test.status)
			awaitFree(t, locks, receive(t, watch.acquired, "the hook"))
		})
	}
}

func nextOnly(c *gin.Context) { c.Next() }

// other is a writer that is not the one it was made of.
type other struct{ gin.ResponseWriter }

// Handlers get at the facts through gin's context, with ContextWithFallback or without, and through the request's.
func TestFactsInBothContexts(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, fallback := range map[string]bool{"with fallback": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
			engine := router(guard, func(c *gin.Context) {
				want, _ := core.TokenFrom(c.Request.Context())
				derived, cancel := context.WithCancel(c)
				defer cancel()
				for which, ctx := range map[string]context.Context{
					"gin": c, "derived": derived, "copy": c.Copy(), "request": c.Request.Context(),
				} {
					token, ok := core.TokenFrom(ctx)
					if !ok || token != want || token <= 0 || httplock.Degraded(ctx) {
						t.Errorf("%s: token %d, %v, want %d; degraded %v", which, token, ok, want, httplock.Degraded(ctx))
					}
				}
			})
			engine.ContextWithFallback = fallback
			post(t.Context(), serve(t, engine), "ada", name).want(t, http.StatusOK)
		})
	}
}

func TestFactsOfTheInnermostGuard(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	var tokens []int64
	note := func(c *gin.Context) {
		token, _ := core.TokenFrom(c.Request.Context())
		tokens = append(tokens, token)
	}
	around := func(c *gin.Context) {
		note(c)
		c.Next()
		note(c)
	}
	outer := ginlock.Exclusive(locks.Mutex, httplock.ByHeader("X-User"), core.WithWait(patience))
	inner := ginlock.Exclusive(locks.Mutex, httplock.ByQuery("cart"), core.WithWait(patience))
	post(t.Context(), serve(t, router(outer, around, inner, note)), "ada", "7").want(t, http.StatusOK)
	if len(tokens) != 3 || tokens[0] == tokens[1] || tokens[0] != tokens[2] {
		t.Errorf("tokens %d before, inside and after the inner guard", tokens)
	}
}

// TestRouteOfAMuxInside: a middleware around the guard sees the route that a mux behind it has found.
func TestRouteOfAMuxInside(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{id...}", func(http.ResponseWriter, *http.Request) {})
	guards := recording(locks)
	guards["Exclusive"] = ginlock.Exclusive(locks.Mutex, httplock.ByHeader("X-User"), patient)
	guards["none"] = nextOnly
	for kind, guard := range guards {
		var pattern string
		look := func(c *gin.Context) {
			c.Next()
			pattern = c.Request.Pattern
		}
		order(t, serve(t, router(look, guard, gin.WrapH(mux))), kind).want(t, http.StatusOK)
		if pattern != "POST /{id...}" {
			t.Errorf("%s: pattern %q", kind, pattern)
		}
	}
}

// TestBodyIsLeftToTheChain: what ShouldBindBodyWith reads is the body of the request as the middlewares behind the guard
// have left it. So the guard keeps none of it for gin, except what gin has kept before.
func TestBodyIsLeftToTheChain(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	decrypt := func(c *gin.Context) {
		text, _ := io.ReadAll(c.Request.Body)
		clear := strings.ReplaceAll(string(text), "encrypted", `{"amount":5}`)
		c.Request.Body, c.Request.ContentLength = io.NopCloser(strings.NewReader(clear)), int64(len(clear))
	}
	user := httplock.ByHeader("X-User")
	for name, guard := range map[string]gin.HandlerFunc{
		"Exclusive":  ginlock.Exclusive(locks.Mutex, user, patient),
		"Once":       ginlock.Once(locks, user, patiently()...),
		"Idempotent": ginlock.Idempotent(locks, user, patiently()...),
	} {
		srv := serve(t, router(guard, decrypt, func(c *gin.Context) {
			var p payment
			err := c.ShouldBindBodyWithJSON(&p)
			c.String(http.StatusOK, "%d %v", p.Amount, err)
		}))
		a := order(t, srv, name, func(r *http.Request) {
			r.Header.Set("X-User", name)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("encrypted")), 9
		})
		if a.want(t, http.StatusOK); a.body != "5 <nil>" {
			t.Errorf("%s: the handler got %q", name, a.body)
		}
		srv = serve(t, router(readBefore, guard, func(c *gin.Context) {
			kept, _ := c.Get(gin.BodyBytesKey)
			c.String(http.StatusOK, "%s", kept)
		}))
		a = order(t, srv, name+"-kept", func(r *http.Request) { r.Header.Set("X-User", name+"-kept") })
		if a.want(t, http.StatusOK); a.body != `{"item":"pen"}` {
			t.Errorf("%s: kept in front is %q", name, a.body)
		}
	}
}

// readBefore leaves the body as ShouldBindBodyWith does.
func readBefore(c *gin.Context) {
	text, _ := c.GetRawData()
	c.Set(gin.BodyBytesKey, text)
}

// TestRunOfGinContext: what core knows of a run is found by the *gin.Context and by contexts of it, and an inner run of a handler
// comes before the guard's.
func TestRunOfGinContext(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Once(locks, httplock.ByHeader("X-User"), unhurried)
	ran := make(chan string, 1)
	srv := serve(t, router(guard, func(c *gin.Context) {
		outer, inRequest := core.AttemptFrom(c.Request.Context())
		attempt, found := core.AttemptFrom(c)
		token, _ := core.TokenFrom(c)
		switch {
		case !inRequest || !found || attempt != outer:
			ran <- fmt.Sprintf("attempt %p of the gin.Context, %p of the request", attempt, outer)
			return
		case token != attempt.Token() || core.KeyHash(c) == "" || core.KeyHash(c) != core.KeyHash(c.Request.Context()):
			ran <- fmt.Sprintf("token %d, want %d, key hash %q", token, attempt.Token(), core.KeyHash(c))
			return
		}
		_, err := locks.Once("inner").Do(c, func(ctx context.Context) ([]byte, error) {
			if inner, found := core.AttemptFrom(ctx); !found || inner == attempt {
				return nil, errors.New("the attempt of the inner run is not found")
			}
			return nil, nil
		})
		ran <- fmt.Sprint(err)
	}))
	post(t.Context(), srv, "ada", "cart").want(t, http.StatusOK)
	if got := <-ran; got != "<nil>" {
		t.Error(got)
	}
}
