package nethttp_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	httpconformance "github.com/holdfast-go/holdfast/tests/conformance/http"
)

// TestConformance comes before the parallel tests of the package: it takes all there is of a small machine.
func TestConformance(t *testing.T) {
	httpconformance.Run(t, httpconformance.Adapter{
		Exclusive: func(s core.Strategy, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return httplock.NewExclusive(s, key.Func(), opts...)
		},
		Once: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return httplock.NewOnce(c, key.Func(), opts...)
		},
		Idempotent: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return httplock.NewIdempotent(c, key.Func(), opts...)
		},
		Handler: func(routes ...httpconformance.Route) http.Handler {
			mux := http.NewServeMux()
			for _, route := range routes {
				h := route.Handler
				for i := len(route.Guards) - 1; i >= 0; i-- {
					h = wrap(route.Guards[i], h)
				}
				mux.Handle(route.Path, h)
			}
			return mux
		},
	})
}

// wrap puts a guard of either form in front of a handler.
func wrap(guard httpconformance.Guard, next http.Handler) http.Handler {
	if g, ok := guard.(*httplock.Guard); ok {
		return g.Wrap(next)
	}
	return guard.(func(http.Handler) http.Handler)(next)
}
