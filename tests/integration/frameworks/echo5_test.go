package frameworks_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	echomiddleware "github.com/labstack/echo/v5/middleware"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/conformance/http"
)

// guarded makes a middleware of Echo 5 of a guard, and tells the guard the route as http.ServeMux does.
func guarded(guard func(http.Handler) http.Handler) echo.MiddlewareFunc {
	return echo.WrapMiddleware(func(next http.Handler) http.Handler {
		inner := guard(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pattern := strings.Split(r.Pattern, "/")
			for i, segment := range pattern {
				switch {
				case strings.HasPrefix(segment, ":"):
					pattern[i] = "{" + segment[1:] + "}"
				case segment == "*":
					pattern[i] = "{rest...}"
					r.SetPathValue("rest", r.PathValue("*"))
				case segment == "" && i > 0 && i == len(pattern)-1:
					pattern[i] = "{$}" // the path ends in a slash
				}
			}
			r.Pattern = strings.Join(pattern, "/")
			inner.ServeHTTP(w, r)
		})
	})
}

// newEcho5 returns an Echo 5 that logs nothing.
func newEcho5() *echo.Echo {
	e := echo.New()
	e.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return e
}

func TestEcho5(t *testing.T) {
	conform(t, true, func(routes ...httpconformance.Route) http.Handler {
		e := newEcho5()
		for _, route := range routes {
			var guards []echo.MiddlewareFunc
			for _, g := range route.Guards {
				guards = append(guards, guarded(asMiddleware(g)))
			}
			e.Any(strings.ReplaceAll(route.Path, "{id}", ":id"), echo.WrapHandler(route.Handler), guards...)
		}
		return e
	})
}

// TestEcho5AnswersAround is TestEchoAnswersAround for Echo 5.
func TestEcho5AnswersAround(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	putBack := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			response := c.Response()
			defer c.SetResponse(response)
			return next(c)
		}
	}
	for name, test := range map[string]struct {
		around echo.MiddlewareFunc
		failed echo.HTTPErrorHandler
		status int // 0 if the connection breaks
	}{
		"put back":  {around: putBack, status: 500},
		"body dump": {around: echomiddleware.BodyDump(func(*echo.Context, []byte, []byte, error) {}), status: 500},
		"panic":     {failed: func(*echo.Context, error) { panic(errDatabase) }},
	} {
		for policy, want := range map[core.FailurePolicy]core.State{
			core.RetryFailures: core.StateNone, core.HoldFailures: core.StateUnknown,
		} {
			t.Run(name+map[bool]string{true: ", held"}[policy == core.HoldFailures], func(t *testing.T) {
				t.Parallel()
				e, runs := newEcho5(), 0
				if test.around != nil {
					e.Use(test.around)
				}
				if test.failed != nil {
					e.HTTPErrorHandler = test.failed
				}
				guard := httplock.Idempotent(locks, httplock.Unscoped(), unhurried(core.WithFailurePolicy(policy))...)
				e.POST("/orders/:id", func(*echo.Context) error {
					runs++
					return errDatabase
				}, guarded(guard))
				aroundTheGuard(t, locks, e, test.status, want, &runs)
			})
		}
	}
}

// TestEcho5Keys: a request to Echo 5 has the keys of one to http.ServeMux.
func TestEcho5Keys(t *testing.T) {
	t.Parallel()
	for _, test := range echoKeys() {
		e := newEcho5()
		var got httplock.Key
		var failed error
		e.POST(test.pattern, func(*echo.Context) error { return nil }, guarded(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got, failed = test.key(r)
				next.ServeHTTP(w, r)
			})
		}))
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, test.path, nil))
		want, err := test.want()
		if err != nil {
			t.Fatal(err)
		}
		if failed != nil || !got.Equal(want) {
			t.Errorf("%s of %s: error %v, another key than in net/http", test.path, test.pattern, failed)
		}
	}
}

// TestEcho5RouteIsDocumented: what docs/http.md tells users of Echo 5 to write is what these tests run.
func TestEcho5RouteIsDocumented(t *testing.T) {
	t.Parallel()
	isDocumented(t, "guarded", "echo5_test.go")
}
