package gin_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestRedisOutage(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*testkit.Server){
		"killed": (*testkit.Server).Kill, "frozen": (*testkit.Server).Pause,
	} {
		for _, wait := range []time.Duration{0, 250 * time.Millisecond} {
			t.Run(name+", wait "+wait.String(), func(t *testing.T) {
				t.Parallel()
				srv := testkit.Start(t)
				watch := newWatch()
				locks := newLocks(t, srv.Client(), watch.hooks())
				closed := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(wait))
				open := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(wait), httplock.FailOpen())
				fail(srv)
				// go-redis cannot close a client while a command waits for a frozen server, and locks try for
				// seconds to take back what they may have got.
				t.Cleanup(srv.Restart)
				a := refused(t, closed)
				a.want(t, http.StatusServiceUnavailable)
				p := a.problem(t)
				if p.Code != httplock.CodeLockUnavailable || !p.Retryable || p.RetryAfter < 1 || p.RetryAfter > 5 {
					t.Errorf("problem %+v", p)
				}
				site := serve(t, router(open, func(c *gin.Context) {
					for _, ctx := range []context.Context{c, c.Request.Context()} {
						if _, locked := core.TokenFrom(ctx); locked || !httplock.Degraded(ctx) {
							t.Errorf("locked %v, degraded %v", locked, httplock.Degraded(ctx))
						}
					}
					_, _ = io.Copy(c.Writer, c.Request.Body)
				}))
				b := post(t.Context(), site, "ada", "7")
				b.want(t, http.StatusOK)
				if b.body != "pay" {
					t.Errorf("the handler read %q", b.body)
				}
				if err := receive(t, watch.failed, "the hook"); err == nil || len(watch.acquired) > 0 {
					t.Errorf("failure %v, acquired %d times", err, len(watch.acquired))
				}
			})
		}
	}
}

// FailOpen is about outages only.
func TestFailOpenStillExcludes(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), httplock.FailOpen(), unhurried)
	hold(t, guard)
	refused(t, guard).want(t, http.StatusConflict)
}

func TestDeadlineOfTheContextEndsTheWait(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(time.Hour))
	hold(t, guard)
	deadline := func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), 3*time.Second)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
	srv := serve(t, router(deadline, guard, func(*gin.Context) { t.Error("the handler ran") }))
	a := post(t.Context(), srv, "ada", "7")
	a.want(t, http.StatusConflict)
}
