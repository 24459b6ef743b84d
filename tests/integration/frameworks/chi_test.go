package frameworks_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/conformance/http"
)

// TestChi comes before the parallel tests of the package: it takes all there is of a small machine.
func TestChi(t *testing.T) {
	conform(t, func(routes ...httpconformance.Route) http.Handler {
		router := chi.NewRouter()
		for _, route := range routes {
			var guards []func(http.Handler) http.Handler
			for _, g := range route.Guards {
				guards = append(guards, asMiddleware(g))
			}
			router.With(guards...).Handle(route.Path, route.Handler)
		}
		return router
	})
}

// chi's Timeout ends the context of a handler, and answers 504 when it has returned: on whichever side of the guard it
// is, the handler has not answered. Around the guard its 504 comes after what the guard sends in place of an answer.
func TestChiTimeout(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	sent := map[core.FailurePolicy]int{
		core.RetryFailures: http.StatusServiceUnavailable, core.HoldFailures: http.StatusConflict,
	}
	for policy, want := range map[core.FailurePolicy]core.State{
		core.RetryFailures: core.StateNone, core.HoldFailures: core.StateUnknown,
	} {
		guard := httplock.Idempotent(locks, httplock.Unscoped(), unhurried(core.WithFailurePolicy(policy))...)
		for name, order := range map[string]func(timeout func(http.Handler) http.Handler) chi.Middlewares{
			"around": func(timeout func(http.Handler) http.Handler) chi.Middlewares { return chi.Middlewares{timeout, guard} },
			"inside": func(timeout func(http.Handler) http.Handler) chi.Middlewares { return chi.Middlewares{guard, timeout} },
		} {
			key, ran := name+string(want)+"k", false
			for limit := 50 * time.Millisecond; !ran; limit *= 2 { // a busy machine may need more to begin
				router := chi.NewRouter()
				router.With(order(chimiddleware.Timeout(limit))...).Post("/orders/{id}",
					func(_ http.ResponseWriter, r *http.Request) {
						ran = true
						<-r.Context().Done()
					})
				srv := httptest.NewServer(router)
				resp, _ := post(t, srv, key)
				srv.Close()
				status := map[string]int{"inside": http.StatusGatewayTimeout, "around": sent[policy]}[name]
				if ran && resp.StatusCode != status {
					t.Errorf("%s: status %d, want %d", name, resp.StatusCode, status)
				}
			}
			if got := awaitEnd(t, locks, key); got != want {
				t.Errorf("%s with policy %d: the record is %q, want %q", name, policy, got, want)
			}
		}
	}
}
