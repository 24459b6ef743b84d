package nethttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// mountPayments does what the README shows for payments.
func mountPayments(mux *http.ServeMux, locks *core.Client, user httplock.KeyFunc, payments http.Handler) {
	mux.Handle("POST /payments", httplock.Idempotent(locks, user, core.WithFailurePolicy(core.HoldFailures))(payments))
}

// TestPaymentsOfTheReadme plays the line of the README: a handler that charges and then fails, and a client that tries
// again five times. There is one charge.
func TestPaymentsOfTheReadme(t *testing.T) {
	t.Parallel()
	charges := 0
	payments := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		charges++
		w.WriteHeader(http.StatusInternalServerError)
	})
	mux := http.NewServeMux()
	mountPayments(mux, newLocks(t, testkit.Start(t).Client()), httplock.ByHeader("X-User"), payments)
	srv := httpkit.Serve(t, mux)
	pay := func() httpkit.Answer {
		req, err := http.NewRequest(http.MethodPost, srv.URL+"/payments", strings.NewReader("9.90"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-User", "ada")
		req.Header.Set("Idempotency-Key", "k")
		return httpkit.Send(srv, req)
	}
	// A busy machine may need longer for a reply of Redis than the guard gives it. Such a request is refused.
	testkit.Eventually(t, httpkit.Patience, "the payment to run", func() bool { return pay().Status == http.StatusInternalServerError })
	for range 5 {
		if a := pay(); a.Err != nil || a.Status < 400 {
			t.Errorf("a retry got status %d, error %v", a.Status, a.Err)
		}
	}
	if charges != 1 {
		t.Errorf("%d charges, want 1", charges)
	}
}
