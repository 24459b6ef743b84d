package nethttp_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/middleware"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// TestSilentRefusalHandler: a refusal that its handler does not answer is not the server's empty 200.
func TestSilentRefusalHandler(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	outer := httplock.Idempotent(locks, httplock.Unscoped(), patientOnce()...)
	for name, test := range map[string]struct {
		handler httplock.RefusalHandler
		status  int
		problem bool
	}{
		"nothing":        {func(http.ResponseWriter, *http.Request, *httplock.Conflict) {}, http.StatusBadRequest, true},
		"another status": {func(_ http.ResponseWriter, _ *http.Request, c *httplock.Conflict) { c.Status = 418 }, 418, true},
		"status 200":     {func(w http.ResponseWriter, _ *http.Request, _ *httplock.Conflict) { w.WriteHeader(200) }, 200, false},
		"early hints":    {func(w http.ResponseWriter, _ *http.Request, _ *httplock.Conflict) { w.WriteHeader(103) }, 400, true},
		"flush": {func(w http.ResponseWriter, _ *http.Request, _ *httplock.Conflict) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}, 200, false},
	} {
		guard := httplock.Exclusive(locks.Mutex, httplock.ByHeader("X-Cart"), httplock.WithRefusalHandler(test.handler))
		inner := guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
		for where, handler := range map[string]http.Handler{"alone": inner, "inside": outer(inner)} {
			a := order(t, httpkit.Serve(t, handler), name[:4]+where)
			a.Want(t, test.status)
			if test.problem && a.Problem(t).Code != middleware.CodeKeyRequired {
				t.Errorf("%s, %s: %s", name, where, a.Body)
			}
		}
	}
}
