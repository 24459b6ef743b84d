package nethttp_test

import (
	"net/http"
	"reflect"
	"strconv"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// TestReplayAddsToTheFieldsAround: a replay has the values of the handler, and those that a middleware around the guard has
// set for the replay, not for the first request.
func TestReplayAddsToTheFieldsAround(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := httplock.Idempotent(locks, httplock.Unscoped(), patientOnce()...)
	handler := guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Add("X-Cost", "handler")
		h.Set("X-Replaced", "handler")
		h["X-Before"] = append([]string{"handler"}, h["X-Before"]...)
		h.Add("X-Own", "handler")
		w.WriteHeader(http.StatusNoContent)
	}))
	requests := 0
	srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		for _, name := range []string{"X-Cost", "X-Replaced", "X-Before", "X-Outer"} {
			w.Header().Set(name, "outer"+strconv.Itoa(requests))
		}
		handler.ServeHTTP(w, r)
	}))
	for _, outer := range []string{"outer1", "outer2", "outer3"} {
		a := order(t, srv, "k")
		a.Want(t, http.StatusNoContent)
		for name, want := range map[string][]string{
			"X-Cost": {outer, "handler"}, "X-Replaced": {"handler"}, "X-Outer": {outer}, "X-Own": {"handler"},
			"X-Before": {"handler", "outer1"}, // cannot be told from values of the handler
		} {
			if got := a.Header[name]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s is %q, want %q", outer, name, got, want)
			}
		}
	}
}
