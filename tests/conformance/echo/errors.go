package echoconformance

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

var errDatabase = errors.New("the database is away")

// ending is how a handler ends, and what the client and a retry get.
type ending[C Context] struct {
	handler Handler[C]
	around  Middleware[C]  // the guard, if not nil
	inside  Middleware[C]  // the guard, if not nil
	failed  func(C, error) // Echo's own if nil
	status  int            // 0 if the connection breaks
	held    int            // the same with HoldFailures, if not 0
	states  [2]core.State  // with RetryFailures and with HoldFailures
	unlike  bool           // without the guard the client gets something else
}

// The states of records after a success, and after a failure.
var (
	done   = [2]core.State{core.StateCompleted, core.StateCompleted}
	failed = [2]core.State{core.StateNone, core.StateUnknown}
)

func (a Adapter[C]) endings() map[string]ending[C] {
	httpError := func(status int) Handler[C] { return func(C) error { return a.HTTPError(status, "", nil) } }
	fail := func(C) error { return errDatabase }
	reports := func(next Handler[C]) Handler[C] { // as Echo's RequestLogger does
		return func(c C) error {
			err := next(c)
			if err != nil {
				a.Report(c, err)
			}
			return err
		}
	}
	accepted := func(next Handler[C]) Handler[C] { // sets a status for handlers that write without one
		return func(c C) error {
			a.SetStatus(c, http.StatusAccepted)
			return next(c)
		}
	}
	all := map[string]ending[C]{
		"nothing": {handler: func(C) error { return nil }, status: 200, states: done},
		"answered": {
			handler: func(c C) error { return c.String(201, "done") },
			status:  201, states: done,
		},
		"no content":     {handler: func(c C) error { return c.NoContent(204) }, status: 204, states: done},
		"error":          {handler: fail, status: 500, states: failed},
		"HTTP error 503": {handler: httpError(503), status: 503, states: failed},
		"HTTP error 409": {handler: httpError(409), status: 409},
		"HTTP error 404": {handler: httpError(404), status: 404, states: done},
		"answered, then an error": {
			handler: func(c C) error { return errors.Join(c.String(201, "done"), errDatabase) },
			status:  201, states: done,
		},
		"error, reported around the guard": {handler: fail, around: reports, status: 500, states: failed},
		"error, reported inside":           {handler: fail, inside: reports, status: 500, states: failed},
		"HTTP error 404, reported inside":  {handler: httpError(404), inside: reports, status: 404, states: done},
		"HTTP error 404, writer put back":  {handler: httpError(404), around: a.PutBack, status: 404, states: done},
		"HTTP error 404, body dump around": {handler: httpError(404), around: a.Dump, status: 404, states: done},
		"HTTP error 404, body dump inside": {handler: httpError(404), inside: a.Dump, status: 404, states: done},
		"HTTP error 404, compressed around": {
			handler: httpError(404),
			around:  a.Gzip, status: 404, states: done,
		},
		"HTTP error 404, compressed inside": {
			handler: httpError(404),
			inside:  a.Gzip, status: 404, states: done,
		},
		"error handler panics": {
			handler: fail,
			failed:  func(C, error) { panic(errDatabase) }, states: failed,
		},
		"error handler is silent": {
			handler: fail,
			failed:  func(C, error) {}, status: 503, held: 409, states: failed,
		},
		"panic": {handler: func(C) error { panic(errDatabase) }, states: failed},
		"panic, recovered around the guard": {
			handler: func(C) error { panic(errDatabase) },
			around:  a.Recover, status: 500, states: failed,
		},
		"panic, recovered inside": {
			handler: func(C) error { panic(errDatabase) },
			inside:  a.Recover, status: 500, states: failed,
		},
		"panic behind an answer, around": {
			handler: func(c C) error { _ = c.String(201, "not sent"); panic(errDatabase) },
			around:  a.Recover, status: 500, states: failed, unlike: true,
		},
		"declared completed, then an error": {
			handler: func(c C) error { return errors.Join(core.Complete(c.Request().Context()), errDatabase) },
			status:  500, states: done,
		},
		"declared released, then a success": {
			handler: func(c C) error { return errors.Join(core.Release(c.Request().Context()), c.NoContent(204)) },
			status:  204,
		},
		"a status of the middleware's around": {
			handler: func(c C) error { _, err := a.Writer(c).Write([]byte("x")); return err },
			around:  accepted, status: 202, states: done,
		},
	}
	if a.Timeout != nil {
		all["HTTP error 404, timeout around"] = ending[C]{handler: httpError(404), around: a.Timeout, status: 404, states: done}
		all["error, timeout around"] = ending[C]{handler: fail, around: a.Timeout, status: 500, states: failed}
	}
	return all
}

// testErrors: an error that a handler returns is answered as Echo answers it without the guard, and is recorded as that.
func testErrors[C Context](t *testing.T, a Adapter[C]) {
	locks := newLocks(t)
	for name, test := range a.endings() {
		for i, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
			name, want := name, test.states[i]
			if i == 1 {
				name += ", held"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e, runs := a.New(test.failed), 0
				if test.around != nil {
					e.Use(test.around)
				}
				guard := a.idempotent(t, locks, core.WithFailurePolicy(policy))
				chain := []Middleware[C]{guard.Wrap}
				if test.inside != nil {
					chain = append(chain, test.inside)
				}
				e.Handle(http.MethodPost, "/orders/:id", func(c C) error {
					runs++
					return test.handler(c)
				}, chain...)
				e.Handle(http.MethodPost, "/plain/:id", test.handler, chain[1:]...)
				srv := httpkit.Serve(t, e)
				key := strings.NewReplacer(",", "", "/", "").Replace(t.Name())
				status := test.status
				if i == 1 && test.held != 0 {
					status = test.held
				}
				first := post(t, srv, "/orders/1", key)
				if first.Status != status {
					t.Errorf("status %d, want %d: %s", first.Status, status, first.Body)
				}
				if plain := post(t, srv, "/plain/1", key); test.failed == nil && !test.unlike && (plain.Status != first.Status || plain.Body != first.Body) {
					t.Errorf("answered %d %q, without the guard %d %q", first.Status, first.Body, plain.Status, plain.Body)
				}
				if got := stateOf(t, guard, key); got != want {
					t.Fatalf("the record is %q, want %q", got, want)
				}
				again := post(t, srv, "/orders/1", key)
				switch want {
				case core.StateCompleted:
					if !replayed(again) || again.Status != first.Status || again.Body != first.Body {
						t.Errorf("retry got %+v, want a replay of %+v", again, first)
					}
				case core.StateUnknown:
					if again.Status != http.StatusConflict || !strings.Contains(again.Body, "outcome-unknown") {
						t.Errorf("retry got %+v, want 409 outcome-unknown", again)
					}
				}
				if wantRuns := 1 + map[bool]int{true: 1}[want == core.StateNone]; runs != wantRuns {
					t.Errorf("%d runs, want %d", runs, wantRuns)
				}
			})
		}
	}
}

// testErrorsReachMiddlewaresAround: middlewares around the guard see the error, the writer and the response that they see without it.
func testErrorsReachMiddlewaresAround[C Context](t *testing.T, a Adapter[C]) {
	locks := newLocks(t)
	type sight struct {
		Response
		err    error
		before int // calls of a function that was registered around the guard
		same   bool
	}
	seen := make(chan sight, 10)
	answered := 0
	e := a.New(func(c C, err error) {
		if a.Response(c).Committed {
			return
		}
		answered++
		_ = c.String(http.StatusTeapot, err.Error())
	})
	e.Use(func(next Handler[C]) Handler[C] {
		return func(c C) error {
			r, w := c.Request(), a.Writer(c)
			var s sight
			a.Before(c, func() { s.before++ })
			s.err = next(c)
			s.Response, s.same = a.Response(c), c.Request() == r && a.Writer(c) == w
			seen <- s
			return s.err
		}
	})
	e.Handle(http.MethodPost, "/fails", func(C) error { return errDatabase }, a.idempotent(t, locks).Wrap)
	e.Handle(http.MethodPost, "/works", func(c C) error { return c.String(http.StatusCreated, "done") }, a.idempotent(t, locks).Wrap)
	srv := httpkit.Serve(t, e)
	for path, want := range map[string]sight{
		"/fails": {Response{true, http.StatusTeapot, int64(len(errDatabase.Error()))}, errDatabase, 1, true},
		"/works": {Response{true, http.StatusCreated, 4}, nil, 1, true},
	} {
		if got := post(t, srv, path, path[1:]); got.Status != want.Status || len(got.Body) != int(want.Size) {
			t.Errorf("%s: answered %+v", path, got)
		}
		if got := <-seen; got != want {
			t.Errorf("%s: middlewares around the guard see %+v, want %+v", path, got, want)
		}
	}
	if answered != 1 {
		t.Errorf("the error was answered %d times, want once", answered)
	}
}

// testErrorsAreAnsweredUnderTheLock: no other request of the key runs while the error handler writes.
func testErrorsAreAnsweredUnderTheLock[C Context](t *testing.T, a Adapter[C]) {
	locks := newLocks(t)
	var held []bool
	e := a.New(func(c C, err error) {
		if !a.Response(c).Committed {
			_, found := core.TokenFrom(c.Request().Context())
			held = append(held, found)
			_ = c.String(http.StatusTeapot, err.Error())
		}
	})
	guard := a.exclusive(t, locks, httplock.Constant("all"))
	e.Handle(http.MethodPost, "/", func(C) error { return errDatabase }, guard)
	if got := post(t, httpkit.Serve(t, e), "/", "k"); got.Status != http.StatusTeapot || !slices.Equal(held, []bool{true}) {
		t.Errorf("status %d, held %v: want that the error is answered once, under the lock", got.Status, held)
	}
}

// testFailureIsRecordedFirst: a failure is recorded before the client is told of it, so its next request runs.
func testFailureIsRecordedFirst[C Context](t *testing.T, a Adapter[C]) {
	e := a.New(func(c C, err error) {
		if !a.Response(c).Committed {
			_ = c.String(http.StatusBadGateway, err.Error()+strings.Repeat("!", 100_000)) // more than the server buffers
		}
	})
	e.Handle(http.MethodPost, "/", func(C) error { return errDatabase }, a.idempotent(t, newLocks(t)).Wrap)
	srv := httpkit.Serve(t, e)
	for range 20 {
		if got := post(t, srv, "/", "k"); got.Status != http.StatusBadGateway || len(got.Body) < 100_000 {
			t.Fatalf("status %d, %d bytes: want that each request runs and fails", got.Status, len(got.Body))
		}
	}
}

// testRefusals: Echo's error handler answers refused requests if it is asked to.
func testRefusals[C Context](t *testing.T, a Adapter[C]) {
	locks := newLocks(t)
	var conflicts []string
	render := a.Refusal(func(c C, conflict *httplock.Conflict) error {
		conflicts = append(conflicts, conflict.Code+" "+c.Path())
		return a.HTTPError(conflict.Status, conflict.Code, conflict)
	})
	silent := a.Refusal(func(C, *httplock.Conflict) error { return nil })
	e := a.New(nil)
	var around error
	e.Use(func(next Handler[C]) Handler[C] {
		return func(c C) error { around = next(c); return around }
	})
	handler := func(c C) error { return c.NoContent(http.StatusCreated) }
	e.Handle(http.MethodPost, "/rendered", handler, a.idempotent(t, locks, render).Wrap)
	e.Handle(http.MethodPost, "/silent", handler, a.idempotent(t, locks, silent).Wrap)
	e.Handle(http.MethodPost, "/default", handler, a.idempotent(t, locks).Wrap)
	srv := httpkit.Serve(t, e)
	for path, want := range map[string]string{
		"/rendered": "{\"message\":\"key-invalid\"}\n",
		"/silent":   `"code":"key-invalid"`,
		"/default":  `"code":"key-invalid"`,
	} {
		if got := post(t, srv, path, ""); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, want) {
			t.Errorf("%s: answered %d %q, want 400 %q", path, got.Status, got.Body, want)
		}
		var conflict *httplock.Conflict
		if errors.As(around, &conflict) != (path == "/rendered") {
			t.Errorf("%s: the middlewares around the guard see error %v", path, around)
		}
	}
	if !slices.Equal(conflicts, []string{"key-invalid /rendered"}) {
		t.Errorf("refused: %q", conflicts)
	}
}
