// Package echoconformance is the suite of what only Echo has: the guards for Echo 4 and Echo 5, whose contexts are of two types, pass
// it. What all frameworks on HTTP have in common is in the suite of tests/conformance/http.
package echoconformance

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

// Context has what the contexts of both versions have.
type Context interface {
	comparable
	Request() *http.Request
	Path() string
	FormValue(name string) string
	Set(key string, value any)
	String(status int, text string) error
	NoContent(status int) error
}

type (
	// Handler is a handler of Echo.
	Handler[C Context] = func(C) error
	// Middleware is one of Echo.
	Middleware[C Context] = func(Handler[C]) Handler[C]
)

// App is an Echo.
type App[C Context] struct {
	http.Handler
	Use    func(Middleware[C])
	Handle func(method, path string, handler Handler[C], chain ...Middleware[C])
	// Group returns a function that adds handlers of POST to a group of routes.
	Group func(prefix string, chain ...Middleware[C]) func(path string, handler Handler[C])
}

// Guard is a guard for one version of Echo.
type Guard[C Context] struct {
	Wrap    Middleware[C]
	PeekKey func(ctx context.Context, parts ...httplock.Key) (core.Record, error)
}

// Response is what Echo knows of an answer.
type Response struct {
	Committed bool
	Status    int
	Size      int64
}

// Adapter is a version of Echo with its guards.
type Adapter[C Context] struct {
	// New returns an Echo that logs nothing. The error handler is Echo's own if failed is nil.
	New func(failed func(C, error)) App[C]

	NewExclusive func(core.Strategy, httplock.KeyFunc, ...httplock.Option) (Middleware[C], error)
	NewOnce      func(*core.Client, httplock.KeyFunc, ...httplock.Option) (Guard[C], error)
	// NewIdempotent returns a guard of requests with an Idempotency-Key.
	NewIdempotent func(*core.Client, httplock.KeyFunc, ...httplock.Option) (Guard[C], error)
	Refusal       func(func(C, *httplock.Conflict) error) httplock.Option
	ClientIP      httplock.KeyFunc
	Context       func(*http.Request) C

	// HTTPError returns an error of Echo. The text and the cause may be empty.
	HTTPError func(status int, text string, cause error) error
	// Report has the error handler answer an error.
	Report    func(C, error)
	Writer    func(C) http.ResponseWriter
	Response  func(C) Response
	SetStatus func(c C, status int)
	// Before has fn called before the answer begins.
	Before func(c C, fn func())

	// Middlewares of Echo. PutBack restores the response of the context. Timeout is nil in a version that has none.
	Gzip, Recover, Dump, PutBack, Timeout Middleware[C]
	// BodyLimit is Echo's for bodies of five bytes.
	BodyLimit Middleware[C]
}

// Run runs the suite.
func Run[C Context](t *testing.T, a Adapter[C]) {
	for name, test := range map[string]func(*testing.T, Adapter[C]){
		"Errors":                     testErrors[C],
		"ErrorsReachMiddlewares":     testErrorsReachMiddlewaresAround[C],
		"ErrorsAreAnsweredUnderLock": testErrorsAreAnsweredUnderTheLock[C],
		"FailureIsRecordedFirst":     testFailureIsRecordedFirst[C],
		"Refusals":                   testRefusals[C],
		"Facts":                      testFacts[C],
		"Flush":                      testFlush[C],
		"Upgrade":                    testUpgrade[C],
		"Unguarded":                  testUnguarded[C],
		"Mistakes":                   testMistakes[C],
		"Keys":                       testKeys[C],
		"RoutesInGroups":             testRoutesInGroups[C],
		"BodyOfKeyFunction":          testBodyOfKeyFunction[C],
		"BodyLimit":                  testBodyLimit[C],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, a)
		})
	}
}

// newLocks returns a client of the test's own.
func newLocks(t testing.TB) *core.Client {
	t.Helper()
	locks, err := core.New(testkit.Start(t).Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// unhurried are options for a busy machine.
func unhurried(opts ...httplock.Option) []httplock.Option {
	return append([]httplock.Option{httplock.WithAskTimeout(patience), httplock.WithFinishTimeout(patience)}, opts...)
}

// idempotent is a guard whose key is the Idempotency-Key alone.
func (a Adapter[C]) idempotent(t testing.TB, locks *core.Client, opts ...httplock.Option) Guard[C] {
	t.Helper()
	guard, err := a.NewIdempotent(locks, httplock.Unscoped(), unhurried(opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// exclusive is a guard of one key.
func (a Adapter[C]) exclusive(t testing.TB, locks *core.Client, key httplock.KeyFunc, opts ...httplock.Option) Middleware[C] {
	t.Helper()
	guard, err := a.NewExclusive(locks.Mutex, key, unhurried(opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// post sends a request with an Idempotency-Key.
func post(t testing.TB, srv *httptest.Server, path, key string) httpkit.Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	return httpkit.Send(srv, req)
}

func replayed(a httpkit.Answer) bool { return a.Header.Get("Idempotency-Replayed") == "true" }

// stateOf returns the state of the record of an Idempotency-Key.
func stateOf[C Context](t testing.TB, guard Guard[C], key string) core.State {
	t.Helper()
	part, err := httplock.IdempotencyKey(key)
	if err != nil {
		t.Fatal(err)
	}
	scope, err := httplock.Unscoped()(nil)
	if err != nil {
		t.Fatal(err)
	}
	record, err := guard.PeekKey(t.Context(), scope, part)
	if err != nil {
		t.Fatal(err)
	}
	return record.State
}
