package gin_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

type payment struct {
	Amount int `form:"amount" json:"amount"`
}

// TestBodyBoundInFront: what ShouldBindBodyWith has read in front of the guard is compared, also if the body has no
// Content-Length, and is there for the handler. So is what a middleware has put back.
func TestBodyBoundInFront(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	bind := func(c *gin.Context) { _ = c.ShouldBindBodyWithJSON(&payment{}) }
	guard := ginlock.Idempotent(locks, httplock.ByHeader("X-User"), patiently()...)
	for name, front := range map[string][]gin.HandlerFunc{
		"bound":             {bind},
		"bound twice":       {bind, bind},
		"within a lock":     {ginlock.Exclusive(locks.Mutex, httplock.Constant("lock"), patient), bind},
		"beyond its buffer": {ginlock.Exclusive(locks.Mutex, httplock.Constant("small"), patient, httplock.WithBodyLimit(4)), bind},
		"put back":          {bind, restore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, router(append(front, guard, func(c *gin.Context) {
				rest, _ := io.ReadAll(c.Request.Body)
				var p payment
				err := c.ShouldBindBodyWithJSON(&p)
				c.String(http.StatusOK, "%d %v %s", p.Amount, err, rest)
			})...))
			for key, known := range map[string]bool{"known": true, "unknown": false} {
				pay := func(body string) answer {
					return order(t, srv, key, func(r *http.Request) {
						r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
						if !known {
							r.ContentLength = -1
						}
					})
				}
				first := pay(`{"amount":5}`)
				if want := `5 <nil> {"amount":5}`; first.body != want {
					t.Errorf("the handler got %q, want %q", first.body, want)
				}
				pay(`{"amount":5}`).wantReplay(t, http.StatusOK, first.body)
				if p := pay(`{"amount":900}`).problem(t); p.Code != httplock.CodeKeyReused {
					t.Errorf("code %q, want key-reused", p.Code)
				}
			}
		})
	}
}

// restore puts a body back that was read, as gin's users do.
func restore(c *gin.Context) {
	body, _ := c.Get(gin.BodyBytesKey)
	c.Request.Body = io.NopCloser(bytes.NewReader(body.([]byte)))
}

// TestBodyLostInFront: what gin reads without keeping it cannot be compared.
func TestBodyLostInFront(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Idempotent(locks, httplock.ByHeader("X-User"), patiently()...)
	for name, front := range map[string]gin.HandlerFunc{
		"bound": func(c *gin.Context) { _ = c.ShouldBindJSON(&payment{}) },
		"read":  func(c *gin.Context) { _, _ = c.GetRawData() },
	} {
		srv := serve(t, router(front, guard, func(*gin.Context) { t.Errorf("%s: the handler ran", name) }))
		if p := order(t, srv, "k").problem(t); p.Code != httplock.CodeGuardFailed {
			t.Errorf("%s: code %q, want guard-failed", name, p.Code)
		}
	}
}
