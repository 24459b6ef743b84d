package gin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	httpconformance "github.com/holdfast-go/holdfast/tests/conformance/http"
)

// TestConformance comes before the parallel tests of the package: it takes all there is of a small machine.
func TestConformance(t *testing.T) {
	httpconformance.Run(t, httpconformance.Adapter{
		Exclusive: func(s core.Strategy, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return ginlock.NewExclusive(s, key.Func(), opts...)
		},
		Once: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return ginlock.NewOnce(c, key.Func(), opts...)
		},
		Idempotent: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return ginlock.NewIdempotent(c, key.Func(), opts...)
		},
		Handler: func(routes ...httpconformance.Route) http.Handler {
			engine := gin.New()
			for _, route := range routes {
				var chain []gin.HandlerFunc
				for _, guard := range route.Guards {
					chain = append(chain, handlerOf(guard))
				}
				path := strings.ReplaceAll(route.Path, "{id}", ":id")
				engine.Any(path, append(chain, gin.WrapH(route.Handler))...)
			}
			return engine
		},
		OneProtocol: true,
	})
}

// handlerOf returns a guard of either form as a part of a chain.
func handlerOf(guard httpconformance.Guard) gin.HandlerFunc {
	if g, ok := guard.(*ginlock.Guard); ok {
		return g.Wrap
	}
	return guard.(gin.HandlerFunc)
}
