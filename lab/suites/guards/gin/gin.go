// Package gin guards the routes of gin's tests.
package gin

import (
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Install returns what adds the guard to the handlers of a route.
func Install() func(gin.HandlersChain) gin.HandlersChain {
	var guards []gin.HandlerFunc
	kind, outermost := installed.Which()
	all, more := installed.Options()
	switch kind {
	case "exclusive":
		guards = []gin.HandlerFunc{ginlock.Exclusive(installed.Locks().Mutex, installed.Key, all...)}
	case "once":
		guards = []gin.HandlerFunc{ginlock.Once(installed.Locks(), installed.Key, all...)}
	case "idempotent":
		guards = []gin.HandlerFunc{
			func(c *gin.Context) { installed.Mark(c.Request.Header.Set) },
			ginlock.Idempotent(installed.Locks(), httplock.Unscoped(), more...),
			func(c *gin.Context) { installed.Unmark(c.Request.Header.Del) },
		}
	case installed.Baseline:
		guards = []gin.HandlerFunc{func(c *gin.Context) {
			installed.Ask()
			c.Next()
			installed.Ask()
		}}
	}
	return func(handlers gin.HandlersChain) gin.HandlersChain {
		at := 0
		if !outermost {
			at = len(handlers) - 1
		}
		return slices.Insert(slices.Clone(handlers), at, guards...)
	}
}
