package httpconformance

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var answerTimeTests = tests{
	"EndLeavesTimeForTheAnswer":    testEndInTime,
	"EndAfterATimeoutIsBoundedToo": testEndAfterTimeout,
}

// coreWaits is how long core waits by itself for a release.
const coreWaits = 5 * time.Second

// silentEnd runs a request whose handler ends while Redis is silent. It returns the answer, which is lost if the guard waits
// for Redis until the server writes no more, after writeTimeout. around wraps the guarded handler.
func silentEnd(t *testing.T, s *suite, name string, writeTimeout time.Duration, around func(http.Handler) http.Handler,
	opts ...httplock.Option,
) answer {
	t.Helper()
	redis, locks := outage(t)
	guard := must(t)(map[string]func() (Guard, error){
		"exclusive":  func() (Guard, error) { return s.Exclusive(locks.Mutex, ByUser, opts...) },
		"idempotent": func() (Guard, error) { return s.Idempotent(locks, ByUser, opts...) },
	}[name]())
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		redis.Pause()
		if _, ends := r.Context().Deadline(); ends {
			<-r.Context().Done()
		}
		w.WriteHeader(http.StatusCreated)
	})
	inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: handler})
	site := s.serve(t, around(inner), func(srv *httptest.Server) { srv.Config.WriteTimeout = writeTimeout })
	t.Cleanup(redis.Resume)
	return took(t, name, func() answer { return site.do(request{user: "ada", key: "k"}) })
}

// testEndInTime: Redis is silent when the handler ends. The guard stops waiting for it while the server still writes, however
// long it may wait.
func testEndInTime(t *testing.T, s *suite) {
	around := func(h http.Handler) http.Handler { return h }
	for _, name := range []string{"exclusive", "idempotent"} {
		silentEnd(t, s, name, coreWaits, around, unhurried(nil)...).want(t, http.StatusCreated)
	}
}

// testEndAfterTimeout: a timeout around the guard has ended the context. The end waits for Redis no longer for that.
func testEndAfterTimeout(t *testing.T, s *suite) {
	const timeout = 3 * time.Second // a busy machine may need two for what comes before the handler
	around := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			h.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	for _, name := range []string{"exclusive", "idempotent"} {
		opts := []httplock.Option{httplock.WithAskTimeout(patience), httplock.WithFinishTimeout(100 * time.Millisecond)}
		silentEnd(t, s, name, timeout+coreWaits-time.Second, around, opts...).want(t, http.StatusCreated)
	}
}
