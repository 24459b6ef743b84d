package nethttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// order sends a request with an Idempotency-Key.
func order(t testing.TB, srv *httptest.Server, key string) httpkit.Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	return httpkit.Send(srv, req)
}

// Whatever an inner guard is made to answer, the handler behind it did not run; what a handler between the two answers of
// its own is another matter.
func TestCustomRefusalInside(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	inner := func(conflict httplock.RefusalHandler) func(http.Handler) http.Handler {
		return httplock.Exclusive(locks.Mutex, httplock.ByHeader("X-Missing"), httplock.WithRefusalHandler(conflict))
	}
	write := func(status int) httplock.RefusalHandler {
		return func(w http.ResponseWriter, _ *http.Request, _ *httplock.Conflict) {
			if status != 0 {
				w.WriteHeader(status)
			}
			if status > 200 {
				_, _ = io.WriteString(w, "busy")
			}
		}
	}
	own := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusCreated)
		})
	}
	for name, test := range map[string]struct {
		conflict httplock.RefusalHandler
		between  func(http.Handler) http.Handler
		want     httplock.Disposition
	}{
		"status 202":      {write(202), nil, httplock.Released},
		"status 400":      {write(400), nil, httplock.Released},
		"status 500":      {write(500), nil, httplock.Released},
		"implicit status": {write(200), nil, httplock.Released},
		"nothing":         {write(0), nil, httplock.Released},
		"default":         {httplock.Refuse, nil, httplock.Released},
		"own answer":      {write(409), own, httplock.Completed},
	} {
		for _, policy := range []core.FailurePolicy{httplock.RetryFailures, httplock.HoldFailures} {
			ends := make(chan httplock.Finished, 1)
			outer := httplock.Idempotent(locks, httplock.Unscoped(), unhurried, httplock.WithFailurePolicy(policy),
				httplock.WithHooks(httplock.Hooks{Finished: func(_ context.Context, f httplock.Finished) { ends <- f }}))
			h := inner(test.conflict)(http.NotFoundHandler())
			if test.between != nil {
				h = test.between(h)
			}
			order(t, httpkit.Serve(t, outer(h)), strings.ReplaceAll(name, " ", "-")+map[bool]string{true: "-held"}[policy == httplock.HoldFailures])
			if got := httpkit.Receive(t, ends, "the end").Disposition; got != test.want {
				t.Errorf("%s with policy %d: %v, want %v", name, policy, got, test.want)
			}
		}
	}
}

// A reverse proxy flushes what it passes on, and its answer is recorded all the same.
func TestAnswerOfAReverseProxyIsRecorded(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	backend := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream") // which the proxy flushes at once
		_, _ = io.WriteString(w, "data: 1\n\n")
	}))
	target, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	guard := httplock.Idempotent(locks, httplock.Unscoped(), unhurried)
	srv := httpkit.Serve(t, guard(httputil.NewSingleHostReverseProxy(target)))
	first := order(t, srv, "k")
	first.Want(t, http.StatusOK)
	testkit.Eventually(t, httpkit.Patience, "the replay", func() bool {
		again := order(t, srv, "k")
		return again.Status == http.StatusOK && again.Header.Get("Idempotency-Replayed") == "true" && again.Body == first.Body
	})
}

// What is written through the guard's writer when it is done reaches the client, and counts where the option says so.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, opts := range map[string][]httplock.Option{"judged at once": nil, "awaited": {httplock.LateAnswers()}} {
		ends, late := make(chan httplock.Finished, 10), make(chan httplock.Failure, 10)
		guard := httplock.Idempotent(locks, httplock.Unscoped(), append(opts, unhurried, httplock.WithHooks(httplock.Hooks{
			Finished: func(_ context.Context, f httplock.Finished) { ends <- f },
			Failed:   func(_ context.Context, f httplock.Failure) { late <- f },
		}))...)
		var given http.ResponseWriter
		inner := guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { given = w }))
		srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inner.ServeHTTP(w, r)
			http.Error(given, "failed", http.StatusBadGateway)
		}))
		a := order(t, srv, strings.ReplaceAll(name, " ", "-"))
		a.Want(t, http.StatusBadGateway)
		if a.Body != "failed\n" {
			t.Errorf("%s: body %q", name, a.Body)
		}
		end := httpkit.Receive(t, ends, "the end").Disposition
		if name == "awaited" && end != httplock.Released || name != "awaited" && end != httplock.Completed {
			t.Errorf("%s: %v", name, end)
		}
		if name != "awaited" {
			if f := httpkit.Receive(t, late, "the hook"); f.Operation != "answer" {
				t.Errorf("%s: hook told %+v", name, f)
			}
		}
	}
}
