package httpconformance

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var clientTests = tests{
	"SequentialClientIsNotRefused": testSequential,
	"TransportRetries":             testTransportRetry,
	"TimeoutInsideBreaksExclusion": testTimeoutInside,
	"TimeoutBelongsOutside":        testTimeoutOutside,
}

// testSequential: whoever sends one request after the other never meets its own last one: over new connections with
// HTTP/1.1, over one with HTTP/2.
func testSequential(t *testing.T, s *suite) {
	requests := testkit.Rounds(60, 200)
	large := bytes.Repeat([]byte("b"), 8<<10)
	created := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large) })
	flushed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		created.ServeHTTP(w, r)
		w.(http.Flusher).Flush() // the client has it all before the release
	})
	for name, test := range map[string]struct {
		handler http.Handler
		guard   Guard
		key     func(i int) string
	}{
		"exclusive":         {created, s.exclusive(t), nil},
		"exclusive flushed": {flushed, s.exclusive(t), nil},
		"once replays":      {created, s.once(t, httplock.WithReplay()), nil},
		"idempotent new":    {created, s.idempotent(t), func(i int) string { return fmt.Sprint("k", i) }},
		"idempotent same":   {created, s.idempotent(t), func(int) string { return "k" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := s.mount(t, test.handler, test.guard)
			if !s.http2 {
				site.Client().Transport.(*http.Transport).DisableKeepAlives = true
			}
			refused := 0
			for i := range requests {
				r := request{user: "sequential-" + name}
				if test.key != nil {
					r.key = test.key(i)
				}
				a := site.insist(r) // a busy machine is no conflict
				if a.err != nil || a.status != http.StatusOK && a.status != http.StatusConflict {
					t.Fatalf("status %d, error %v: %s", a.status, a.err, a.body)
				}
				if a.status != http.StatusOK {
					refused++
				}
			}
			t.Logf("%d of %d refused", refused, requests)
			if refused != 0 {
				t.Errorf("%d of %d sequential requests refused", refused, requests)
			}
		})
	}
}

// testTransportRetry: Go's client sends a POST with an Idempotency-Key again by itself if a connection that it has used
// before dies. The application has called it once, and its handler must run once.
func testTransportRetry(t *testing.T, s *suite) {
	if s.http2 {
		t.Skip("over HTTP/2 Go's client does not send again what a server has begun to process")
	}
	runs := &counter{}
	inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{s.idempotent(t)}, Handler: runs})
	var posts atomic.Int64
	site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && posts.Add(1) == 1 {
			inner.ServeHTTP(httptest.NewRecorder(), r) // its answer is lost
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	}))
	site.do(request{method: http.MethodGet}).want(t, http.StatusCreated)
	before := runs.runs.Load()
	site.do(request{user: "transport", key: "k", body: "order"}).replayed(t, http.StatusCreated, "2")
	if n := posts.Load(); n != 2 {
		t.Errorf("the server got %d POSTs, want 2: is the client still that eager?", n)
	}
	runs.ran(t, before+1)
}

// testTimeoutInside shows why a timeout does not belong there: it answers while its handler continues, so the lock is
// released under it. The guard cannot see that; the documentation says so.
func testTimeoutInside(t *testing.T, s *suite) {
	stage := newStage(t)
	hasty := http.TimeoutHandler(stage, time.Millisecond, "timeout")
	site := s.mount(t, hasty, s.exclusive(t, core.WithWait(patience)))
	for range 2 {
		site.do(request{user: "timeout-inside"}).want(t, http.StatusServiceUnavailable)
		receive(t, stage.entered, "a run beside the one before")
	}
	close(stage.leave)
}

func testTimeoutOutside(t *testing.T, s *suite) {
	for name, guard := range map[string]Guard{
		"exclusive": s.exclusive(t, core.WithWait(0)), "idempotent": s.idempotent(t),
	} {
		stage, user := newStage(t), "timeout-outside-"+name
		inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: stage})
		site := s.serve(t, http.TimeoutHandler(inner, 100*time.Millisecond, "timeout"))
		r := request{user: user, key: "k"}
		for running := (*http.Request)(nil); running == nil; {
			first := site.aside(t.Context(), r)
			select {
			case running = <-stage.entered:
				receive(t, first, "the timeout").want(t, http.StatusServiceUnavailable)
				receive(t, running.Context().Done(), "the handler to be told")
			case <-first: // the timeout was over before the run began
			}
		}
		if a := site.do(r); a.status == http.StatusCreated || len(stage.entered) != 0 {
			t.Errorf("%s: status %d, %d more runs while the first goes on", name, a.status, len(stage.entered))
		}
		close(stage.leave)
		if name == "idempotent" { // the client had its timeout, the record has the answer
			deadline := time.Now().Add(patience)
			a := site.do(r)
			for a.status != http.StatusCreated && time.Now().Before(deadline) {
				a = site.do(r)
			}
			a.replayed(t, http.StatusCreated, "done")
		}
	}
}
