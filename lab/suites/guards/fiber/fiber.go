// Package fiber guards the routes of fiber's tests.
package fiber

import (
	"slices"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
	fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Install returns what adds the guard to the handlers of a route, but not to those of Use.
func Install() func(use bool, handlers []fiber.Handler) []fiber.Handler {
	var guards []fiber.Handler
	kind, outermost := installed.Which()
	all, more := installed.Options()
	switch kind {
	case "exclusive":
		guards = []fiber.Handler{fiberlock.Exclusive(installed.Locks().Mutex, installed.Key, all...)}
	case "once":
		guards = []fiber.Handler{fiberlock.Once(installed.Locks(), installed.Key, all...)}
	case "idempotent":
		guards = []fiber.Handler{
			func(c fiber.Ctx) error {
				installed.Mark(c.Request().Header.Set)
				return c.Next()
			},
			fiberlock.Idempotent(installed.Locks(), httplock.Unscoped(), more...),
			func(c fiber.Ctx) error {
				installed.Unmark(c.Request().Header.Del)
				return c.Next()
			},
		}
	case installed.Baseline:
		guards = []fiber.Handler{func(c fiber.Ctx) error {
			installed.Ask()
			defer installed.Ask()
			return c.Next()
		}}
	}
	return func(use bool, handlers []fiber.Handler) []fiber.Handler {
		if use || len(handlers) == 0 {
			return handlers
		}
		at := 0
		if !outermost {
			at = len(handlers) - 1
		}
		return slices.Insert(slices.Clone(handlers), at, guards...)
	}
}
