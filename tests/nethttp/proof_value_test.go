package nethttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestCommittedValueIsNoResponse: the log says so when it is committed, and not only a client whose record is lost.
func TestCommittedValueIsNoResponse(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{
		"paid":                     1,
		"HTTP/1.1 201 Created\n\n": 0,
		"HTTP/1.1 201 Created\nContent-Type: text/plain\n\npaid": 0,
		"HTTP/1.1 201 Created\n\npaid":                           1,
		"":                                                       0, // of Prove
	} {
		var log coretest.Record
		locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithLogger(coretest.TextLogger(&log)))
		p := coretest.NewProof()
		h := httplock.Idempotent(locks, httplock.Unscoped(), unhurried, core.WithProof(p))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := p.InTx(r.Context(), value); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusCreated)
		}))
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "k")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if n := strings.Count(log.String(), "is no response"); n != want {
			t.Errorf("%q: %d lines: %s", value, n, log.String())
		}
	}
}
