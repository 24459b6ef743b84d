// Package chi guards the routes of chi's tests.
package chi

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing/iotest"

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
	case "replayed":
		guard := httplock.Idempotent(installed.Locks(), httplock.Unscoped(), more...)
		return func(handler http.Handler) http.Handler { return twice(guard(handler)) }
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
	case installed.Baseline:
		return func(handler http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				installed.Ask()
				handler.ServeHTTP(w, r)
				installed.Ask()
			})
		}
	case Broken:
		return func(http.Handler) http.Handler { return http.NotFoundHandler() }
	}
	return nil
}

// Broken is a guard that lets nothing pass, by which the harness shows that it notices.
const Broken = "broken"

// recorded reports whether an answer of this status is replayed.
func recorded(status int) bool {
	return status < 500 && status != httplock.StatusClientGone && !slices.Contains([]int{401, 403, 407, 408, 409, 421, 423, 425, 429}, status)
}

// twice has a guarded handler serve each request twice, and answers with what the guard has recorded of the first answer, if that was
// recorded.
func twice(guarded http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil {
			r.Body = http.NoBody
		}
		body, err := io.ReadAll(r.Body)
		if err != nil { // of a limit in front
			r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(err)))
			guarded.ServeHTTP(w, r)
			return
		}
		installed.Mark(r.Header.Set)
		defer installed.Unmark(r.Header.Del)
		first, second := httptest.NewRecorder(), httptest.NewRecorder()
		maps.Copy(first.Header(), w.Header())
		maps.Copy(second.Header(), w.Header())
		serve := func(answer *httptest.ResponseRecorder) {
			again := r.WithContext(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			guarded.ServeHTTP(answer, again)
		}
		serve(first)
		answer := first
		if recorded(first.Code) && !first.Flushed && r.Context().Err() == nil && slices.Contains(installed.Methods, r.Method) {
			serve(second)
			switch {
			case second.Header().Get(httplock.MarkerField) != "":
				answer = second
			case r.Context().Err() == nil: // the client is still there
				panic(fmt.Sprintf("not replayed: %d %v %s", second.Code, second.Header(), second.Body))
			}
		}
		result := answer.Result()
		clear(w.Header())
		maps.Copy(w.Header(), result.Header)
		w.Header().Del(httplock.MarkerField)
		w.WriteHeader(result.StatusCode)
		_, _ = w.Write(answer.Body.Bytes())
	})
}
