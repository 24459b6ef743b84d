package echo4lock_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	echo4lock "github.com/holdfast-go/holdfast/middleware/echo4"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	httpconformance "github.com/holdfast-go/holdfast/tests/conformance/http"
)

// TestConformance comes before the parallel tests of the package: it takes all there is of a small machine.
func TestConformance(t *testing.T) {
	httpconformance.Run(t, httpconformance.Adapter{
		Exclusive: func(s core.Strategy, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return echo4lock.NewExclusive(s, key.Func(), opts...)
		},
		Once: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return echo4lock.NewOnce(c, key.Func(), opts...)
		},
		Idempotent: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return echo4lock.NewIdempotent(c, key.Func(), opts...)
		},
		Handler: func(routes ...httpconformance.Route) http.Handler {
			e := newEcho()
			for _, route := range routes {
				var guards []echo.MiddlewareFunc
				for _, guard := range route.Guards {
					guards = append(guards, middlewareOf(guard))
				}
				e.Any(strings.ReplaceAll(route.Path, "{id}", ":id"), echo.WrapHandler(route.Handler), guards...)
			}
			return e
		},
	})
}

// middlewareOf returns a guard of either form as a middleware.
func middlewareOf(guard httpconformance.Guard) echo.MiddlewareFunc {
	if g, ok := guard.(*echo4lock.Guard); ok {
		return g.Wrap
	}
	return guard.(echo.MiddlewareFunc)
}
