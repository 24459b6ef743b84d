// Package echo4 guards the routes of the tests of Echo 4.
package echo4

import (
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
	echolock "github.com/holdfast-go/holdfast/middleware/echo4"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Install returns what adds the guard to the middlewares of a route.
func Install() func([]echo.MiddlewareFunc) []echo.MiddlewareFunc {
	var guards []echo.MiddlewareFunc
	kind, outermost := installed.Which()
	all, more := installed.Options()
	switch kind {
	case "exclusive":
		guards = []echo.MiddlewareFunc{echolock.Exclusive(installed.Locks().Mutex, installed.Key, all...)}
	case "once":
		guards = []echo.MiddlewareFunc{echolock.Once(installed.Locks(), installed.Key, all...)}
	case "idempotent":
		guards = []echo.MiddlewareFunc{
			around(func(c echo.Context) { installed.Mark(c.Request().Header.Set) }),
			echolock.Idempotent(installed.Locks(), httplock.Unscoped(), more...),
			around(func(c echo.Context) { installed.Unmark(c.Request().Header.Del) }),
		}
	case installed.Baseline:
		guards = []echo.MiddlewareFunc{func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				installed.Ask()
				defer installed.Ask()
				return next(c)
			}
		}}
	}
	for i, guard := range guards {
		guards[i] = served(guard)
	}
	return func(middlewares []echo.MiddlewareFunc) []echo.MiddlewareFunc {
		at := 0
		if !outermost {
			at = len(middlewares)
		}
		return slices.Insert(slices.Clone(middlewares), at, guards...)
	}
}

// around returns a middleware that does this before the handler runs.
func around(before func(echo.Context)) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			before(c)
			return next(c)
		}
	}
}

// served returns a guard of requests that a server has received. Tests of the router call handlers without a writer.
func served(guard echo.MiddlewareFunc) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		guarded := guard(next)
		return func(c echo.Context) error {
			if r := c.Response(); r == nil || r.Writer == nil {
				return next(c)
			}
			return guarded(c)
		}
	}
}
