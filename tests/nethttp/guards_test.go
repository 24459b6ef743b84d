package nethttp_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	guardconformance "github.com/holdfast-go/holdfast/tests/conformance/guard"
)

// TestGuards: requests behind these guards pass the suite of all places.
func TestGuards(t *testing.T) {
	t.Parallel()
	codes := map[string]guardconformance.Code{
		httplock.CodeKeyRequired: guardconformance.NoKey, httplock.CodeLockUnavailable: guardconformance.Unavailable,
		httplock.CodeUndecided:    guardconformance.Undecided,
		httplock.CodeLockConflict: guardconformance.Busy, httplock.CodeRequestInProgress: guardconformance.Busy,
		httplock.CodeAlreadyCompleted: guardconformance.Completed, httplock.CodeOutcomeUnknown: guardconformance.Unknown,
		httplock.CodeKeyReused: guardconformance.Mismatch, httplock.CodeGuardFailed: guardconformance.Erroneous,
		httplock.CodeNotAnswered: guardconformance.Failed, "": guardconformance.Failed,
	}
	guardconformance.Run(t, guardconformance.Place{
		Work: core.Work{Place: "http", Label: "POST /orders"},
		New: func(
			t testing.TB, locks *core.Client, kind guardconformance.Kind, fn guardconformance.Func, opts ...guard.Option,
		) guardconformance.Deliver {
			srv := serveOrders(t, locks, kind, fn, opts...)
			return func(ctx context.Context, key, payload string) guardconformance.Result {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/orders", strings.NewReader(payload))
				if err != nil {
					t.Error(err)
					return guardconformance.Result{}
				}
				if key != "" {
					req.Header.Set("Idempotency-Key", key)
				}
				resp, err := srv.Client().Do(req)
				switch {
				case ctx.Err() != nil:
					return guardconformance.Result{Code: guardconformance.Left}
				case err != nil:
					return guardconformance.Result{Code: guardconformance.Broken}
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				var problem struct{ Code string }
				switch {
				case err != nil:
					return guardconformance.Result{Code: guardconformance.Broken}
				case resp.Header.Get(httplock.MarkerField) != "": // also of a failure after which the handler has called Complete
					return guardconformance.Result{Code: guardconformance.Replayed, Value: string(body)}
				case resp.StatusCode != http.StatusOK:
					_ = json.Unmarshal(body, &problem) // a failure has no code
					return guardconformance.Result{Code: codes[problem.Code]}
				}
				return guardconformance.Result{Code: guardconformance.Ran, Value: string(body)}
			}
		},
		Lacks: map[string]string{
			"OverrunLosesItsLease": "a request keeps its lease until its handler returns",
		},
	})
}

// serveOrders serves a function behind a guard of that kind.
func serveOrders(
	t testing.TB, locks *core.Client, kind guardconformance.Kind, fn guardconformance.Func, opts ...httplock.Option,
) *httptest.Server {
	t.Helper()
	opts = append([]httplock.Option{httplock.WithAskTimeout(guard.AskTimeout)}, opts...) // a busy machine may keep Redis from answering in 1 s
	var wrap func(http.Handler) http.Handler
	var err error
	if kind == guardconformance.Exclusive {
		wrap, err = httplock.NewExclusive(locks.Mutex, httplock.ByHeader("Idempotency-Key"), opts...)
	} else {
		var g *httplock.Guard
		if g, err = httplock.NewIdempotent(locks, httplock.Unscoped(), opts...); err == nil {
			wrap = g.Wrap
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		value, err := fn(r.Context(), string(payload))
		if err != nil {
			http.Error(w, "failed", http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, value)
	})))
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // a panic is on purpose
	srv.Start()
	srv.Client().Transport.(*http.Transport).DisableKeepAlives = true // it would send a request again
	t.Cleanup(srv.Close)
	return srv
}
