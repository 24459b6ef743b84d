package httpconformance

import (
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var paymentTests = tests{
	"OneChargeHoweverOftenTheClientRetries": testOneCharge,
	"FailureBeforeTheChargeIsRetried":       testReleasedCharge,
	"FailureAfterTheChargeIsRetriedWithout": testRetriedCharge,
}

// retries is how often an obstinate client repeats a payment.
const retries = 5

// testOneCharge: the handler charges and then fails. No retry charges again.
func testOneCharge(t *testing.T, s *suite) {
	for name, guard := range map[string]Guard{
		"idempotent": s.idempotent(t, core.WithFailurePolicy(core.HoldFailures)),
		"once":       s.once(t, core.WithFailurePolicy(core.HoldFailures)),
	} {
		charges := &failing{}
		site, r := s.mount(t, charges, guard), request{user: "one-charge-" + name, key: "k"}
		site.do(r).want(t, http.StatusInternalServerError)
		for range retries {
			site.do(r).refused(t, http.StatusConflict, httplock.CodeOutcomeUnknown)
		}
		charges.ran(t, 1)
	}
}

// testReleasedCharge: a handler that knows that it has not charged yet says so, and the client may come back.
func testReleasedCharge(t *testing.T, s *suite) {
	charges, failures := &counter{}, 2
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failures--; failures >= 0 {
			if err := core.Release(r.Context()); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		charges.ServeHTTP(w, r)
	})
	site := s.mount(t, h, s.idempotent(t, core.WithFailurePolicy(core.HoldFailures)))
	r := request{user: "released-charge", key: "k"}
	site.do(r).want(t, http.StatusServiceUnavailable)
	site.do(r).want(t, http.StatusServiceUnavailable)
	site.do(r).fresh(t, http.StatusCreated, "1")
	for range retries {
		site.do(r).replayed(t, http.StatusCreated, "1")
	}
	charges.ran(t, 1)
}

// testRetriedCharge: why payments need the option. Without it, a failure is taken for one that has done nothing.
func testRetriedCharge(t *testing.T, s *suite) {
	charges := &failing{}
	site, r := s.mount(t, charges, s.idempotent(t)), request{user: "retried-charge", key: "k"}
	for range 1 + retries {
		site.do(r).want(t, http.StatusInternalServerError)
	}
	charges.ran(t, 1+retries)
}
