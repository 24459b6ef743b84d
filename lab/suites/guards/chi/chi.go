// Package chi guards the routes of chi's tests.
package chi

import (
	"net/http"

	_ "github.com/go-chi/chi/v5" // whose version is that of go.mod

	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Install returns what finds the guard of a route, which is in front of all its middlewares or right in front of its handler. A mount is
// no route.
func Install() func(route, outermost bool) []func(http.Handler) http.Handler {
	_, where := installed.Which()
	guard := guarded()
	return func(route, outermost bool) []func(http.Handler) http.Handler {
		if guard == nil || !route || outermost != where {
			return nil
		}
		return []func(http.Handler) http.Handler{guard}
	}
}

func guarded() func(http.Handler) http.Handler {
	kind, _ := installed.Which()
	all, more := installed.Options()
	switch kind {
	case "exclusive":
		return httplock.Exclusive(installed.Locks().Mutex, installed.Key, all...)
	case "once":
		return httplock.Once(installed.Locks(), installed.Key, all...)
	case "idempotent":
		guard := httplock.Idempotent(installed.Locks(), httplock.Unscoped(), more...)
		return func(handler http.Handler) http.Handler {
			guarded := guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				installed.Unmark(r.Header.Del)
				handler.ServeHTTP(w, r)
			}))
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				installed.Mark(r.Header.Set)
				guarded.ServeHTTP(w, r)
			})
		}
	}
	if kind == Broken {
		return func(http.Handler) http.Handler { return http.NotFoundHandler() }
	}
	return nil
}

// Broken is a guard that lets nothing pass, by which the harness shows that it notices.
const Broken = "broken"
