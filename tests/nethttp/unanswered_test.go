package nethttp_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// shortTTL, shortHold ends the context of a run by the loss of its lease, although its client waits. The handler must have begun by
// then, also on a busy machine.
var shortTTL, shortHold = core.WithTTL(5 * time.Second), core.WithMaxHold(time.Second)

// silent is a handler that returns without a reply when its context ends.
var silent = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "3")
	w.WriteHeader(http.StatusEarlyHints)
	<-r.Context().Done()
})

// TestUnansweredIsNotAnEmpty200: a client that waits learns that its request was not answered.
func TestUnansweredIsNotAnEmpty200(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	once := func(name string, opts ...httplock.Option) func(http.Handler) http.Handler {
		return httplock.Idempotent(locks, httplock.Constant(name), append(opts, patientOnce()...)...)
	}
	hold := core.WithFailurePolicy(core.HoldFailures)
	exclusive := httplock.Exclusive(locks.Mutex, httplock.Constant("e"), shortTTL, shortHold, patient)
	complete := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := core.Complete(r.Context()); err != nil {
			t.Error(err)
		}
		silent(w, r)
	})
	for name, test := range map[string]struct {
		handler   http.Handler
		status    int
		code      string
		retryable bool
	}{
		"released":          {once("a", shortTTL, shortHold)(silent), 503, httplock.CodeNotAnswered, true},
		"held":              {once("b", shortTTL, shortHold, hold)(silent), 409, httplock.CodeOutcomeUnknown, false},
		"completed":         {once("c", shortTTL, shortHold)(complete), 409, httplock.CodeAlreadyCompleted, false},
		"exclusive":         {exclusive(silent), 503, httplock.CodeNotAnswered, false},
		"exclusive inside":  {once("d", hold)(exclusive(silent)), 409, httplock.CodeOutcomeUnknown, false},
		"held inside":       {once("f")(once("g", shortTTL, shortHold, hold)(silent)), 409, httplock.CodeOutcomeUnknown, false},
		"held around":       {once("h", hold)(once("i", shortTTL, shortHold)(silent)), 409, httplock.CodeOutcomeUnknown, false},
		"exclusive outside": {exclusive(once("j", hold)(silent)), 409, httplock.CodeOutcomeUnknown, false},
		"detached inside":   {exclusive(once("k", httplock.WithDetachedContext())(silent)), 503, httplock.CodeNotAnswered, true},
	} {
		a := order(t, httpkit.Serve(t, test.handler), "k")
		a.WantProblem(t, name, test.status, test.code, test.retryable)
		if retry := a.Header.Get("Retry-After"); (retry != "") != test.retryable {
			t.Errorf("%s: Retry-After %q", name, retry)
		}
	}
}

// TestUnansweredWithinATimeout around the guard, which leaves the client connected: the API's own format is used, and a
// retry finds what the answer has said.
func TestUnansweredWithinATimeout(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	own := httplock.WithRefusalHandler(func(w http.ResponseWriter, r *http.Request, c *httplock.Conflict) {
		w.Header().Set("X-Format", "own")
		httplock.Refuse(w, r, c)
	})
	guard := httplock.Idempotent(locks, httplock.Unscoped(),
		append(patientOnce(), own)...)
	srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := core.Hold(r.Context(), "it was interrupted"); err != nil {
				t.Error(err)
			}
			cancel()
			silent(w, r)
		})).ServeHTTP(w, r.WithContext(ctx))
	}))
	for range 2 {
		a := order(t, srv, "k")
		a.WantProblem(t, "held", http.StatusConflict, httplock.CodeOutcomeUnknown, false)
		if a.Header.Get("X-Format") != "own" {
			t.Error("not by the handler of refusals")
		}
	}
}

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
			if test.problem && a.Problem(t).Code != httplock.CodeKeyRequired {
				t.Errorf("%s, %s: %s", name, where, a.Body)
			}
		}
	}
}
