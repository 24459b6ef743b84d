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
	rdb := testkit.Start(t).Client()
	locks := newLocks(t, rdb)
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
		want     core.State
	}{
		"status 202":      {write(202), nil, core.StateNone},
		"status 400":      {write(400), nil, core.StateNone},
		"status 500":      {write(500), nil, core.StateNone},
		"implicit status": {write(200), nil, core.StateNone},
		"nothing":         {write(0), nil, core.StateNone},
		"default":         {httplock.Refuse, nil, core.StateNone},
		"own answer":      {write(409), own, core.StateCompleted},
	} {
		for _, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
			ends := make(chan core.State, 100)
			locks := newLocks(t, rdb, core.WithHooks(core.Hooks{RunEnd: func(_ context.Context, e core.RunEnd) { ends <- e.State }}))
			outer := httplock.Idempotent(locks, httplock.Unscoped(), unhurried, core.WithFailurePolicy(policy))
			h := inner(test.conflict)(http.NotFoundHandler())
			if test.between != nil {
				h = test.between(h)
			}
			order(t, httpkit.Serve(t, outer(h)), strings.ReplaceAll(name, " ", "-")+map[bool]string{true: "-held"}[policy == core.HoldFailures])
			if got := httpkit.Receive(t, ends, "the end"); got != test.want {
				t.Errorf("%s with policy %d: %q, want %q", name, policy, got, test.want)
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
