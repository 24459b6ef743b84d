package echo4lock_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"

	"github.com/holdfast-go/holdfast/core"
	echo4lock "github.com/holdfast-go/holdfast/middleware/echo4"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var errDatabase = errors.New("the database is away")

// ending is how a handler ends, and what the client and a retry get.
type ending struct {
	handler echo.HandlerFunc
	around  echo.MiddlewareFunc   // the guard, if not nil
	inside  echo.MiddlewareFunc   // the guard, if not nil
	failed  echo.HTTPErrorHandler // Echo's own if nil
	status  int                   // 0 if the connection breaks
	held    int                   // the same with HoldFailures, if not 0
	states  [2]core.State         // with RetryFailures and with HoldFailures
	unlike  bool                  // without the guard the client gets something else
}

// The states of records after a success, and after a failure.
var (
	done   = [2]core.State{core.StateCompleted, core.StateCompleted}
	failed = [2]core.State{core.StateNone, core.StateUnknown}
)

func endings() map[string]ending {
	httpError := func(status int) echo.HandlerFunc {
		return func(echo.Context) error { return echo.NewHTTPError(status) }
	}
	fail := func(echo.Context) error { return errDatabase }
	reports := func(next echo.HandlerFunc) echo.HandlerFunc { // as Echo's RequestLogger does
		return func(c echo.Context) error {
			err := next(c)
			if err != nil {
				c.Error(err)
			}
			return err
		}
	}
	putBack := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			response := c.Response()
			defer c.SetResponse(response)
			return next(c)
		}
	}
	dump := echomiddleware.BodyDump(func(echo.Context, []byte, []byte) {})
	//lint:ignore SA1019 services still have it
	timeout := echomiddleware.TimeoutWithConfig(echomiddleware.TimeoutConfig{Timeout: time.Hour})
	return map[string]ending{
		"nothing": {handler: func(echo.Context) error { return nil }, status: 200, states: done},
		"answered": {
			handler: func(c echo.Context) error { return c.String(201, "done") },
			status:  201, states: done,
		},
		"no content":     {handler: func(c echo.Context) error { return c.NoContent(204) }, status: 204, states: done},
		"error":          {handler: fail, status: 500, states: failed},
		"HTTP error 503": {handler: httpError(503), status: 503, states: failed},
		"HTTP error 409": {handler: httpError(409), status: 409},
		"HTTP error 404": {handler: httpError(404), status: 404, states: done},
		"answered, then an error": {
			handler: func(c echo.Context) error { return errors.Join(c.String(201, "done"), errDatabase) },
			status:  201, states: done,
		},
		"error, reported around the guard": {handler: fail, around: reports, status: 500, states: failed},
		"error, reported inside":           {handler: fail, inside: reports, status: 500, states: failed},
		"HTTP error 404, reported inside":  {handler: httpError(404), inside: reports, status: 404, states: done},
		"HTTP error 404, writer put back":  {handler: httpError(404), around: putBack, status: 404, states: done},
		"HTTP error 404, body dump around": {handler: httpError(404), around: dump, status: 404, states: done},
		"HTTP error 404, body dump inside": {handler: httpError(404), inside: dump, status: 404, states: done},
		"HTTP error 404, compressed around": {
			handler: httpError(404),
			around:  echomiddleware.Gzip(), status: 404, states: done,
		},
		"HTTP error 404, compressed inside": {
			handler: httpError(404),
			inside:  echomiddleware.Gzip(), status: 404, states: done,
		},
		"HTTP error 404, timeout around": {handler: httpError(404), around: timeout, status: 404, states: done},
		"error, timeout around":          {handler: fail, around: timeout, status: 500, states: failed},
		"error handler panics": {
			handler: fail,
			failed:  func(error, echo.Context) { panic(errDatabase) }, states: failed,
		},
		"error handler is silent": {
			handler: fail,
			failed:  func(error, echo.Context) {}, status: 503, held: 409, states: failed,
		},
		"panic": {handler: func(echo.Context) error { panic(errDatabase) }, states: failed},
		"panic, recovered around the guard": {
			handler: func(echo.Context) error { panic(errDatabase) },
			around:  echomiddleware.Recover(), status: 500, states: failed,
		},
		"panic, recovered inside": {
			handler: func(echo.Context) error { panic(errDatabase) },
			inside:  echomiddleware.Recover(), status: 500, states: failed,
		},
		"panic behind an answer, around": {
			handler: func(c echo.Context) error { _ = c.String(201, "not sent"); panic(errDatabase) },
			around:  echomiddleware.Recover(), status: 500, states: failed, unlike: true,
		},
		"declared completed, then an error": {
			handler: func(c echo.Context) error { return errors.Join(core.Complete(c.Request().Context()), errDatabase) },
			status:  500, states: done,
		},
		"declared released, then a success": {
			handler: func(c echo.Context) error { return errors.Join(core.Release(c.Request().Context()), c.NoContent(204)) },
			status:  204,
		},
		"a status of the middleware's around": {
			handler: func(c echo.Context) error { _, err := c.Response().Write([]byte("x")); return err },
			around:  accepted, status: 202, states: done,
		},
	}
}

// accepted sets a status for handlers that write without one.
func accepted(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Status = http.StatusAccepted
		return next(c)
	}
}

// TestErrors: an error that a handler returns is answered as Echo answers it without the guard, and is recorded as that.
func TestErrors(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for name, test := range endings() {
		for i, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
			name, want := name, test.states[i]
			if i == 1 {
				name += ", held"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e, runs := newEcho(), 0
				if test.failed != nil {
					e.HTTPErrorHandler = test.failed
				}
				if test.around != nil {
					e.Use(test.around)
				}
				guard := idempotent(t, locks, core.WithFailurePolicy(policy))
				chain := []echo.MiddlewareFunc{guard.Wrap}
				if test.inside != nil {
					chain = append(chain, test.inside)
				}
				e.POST("/orders/:id", func(c echo.Context) error {
					runs++
					return test.handler(c)
				}, chain...)
				e.POST("/plain/:id", test.handler, chain[1:]...)
				srv := serve(t, e)
				key := strings.NewReplacer(",", "", "/", "").Replace(t.Name())
				status := test.status
				if i == 1 && test.held != 0 {
					status = test.held
				}
				first := post(t, srv, "/orders/1", key)
				if first.status != status {
					t.Errorf("status %d, want %d: %s", first.status, status, first.body)
				}
				if plain := post(t, srv, "/plain/1", key); test.failed == nil && !test.unlike && (plain.status != first.status || plain.body != first.body) {
					t.Errorf("answered %d %q, without the guard %d %q", first.status, first.body, plain.status, plain.body)
				}
				if got := stateOf(t, guard, key); got != want {
					t.Fatalf("the record is %q, want %q", got, want)
				}
				again := post(t, srv, "/orders/1", key)
				switch want {
				case core.StateCompleted:
					if !again.replayed() || again.status != first.status || again.body != first.body {
						t.Errorf("retry got %+v, want a replay of %+v", again, first)
					}
				case core.StateUnknown:
					if again.status != http.StatusConflict || !strings.Contains(again.body, "outcome-unknown") {
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

// TestErrorsReachMiddlewaresAround: middlewares around the guard see the error, the writer and the response that they see without it.
func TestErrorsReachMiddlewaresAround(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	type sight struct {
		err       error
		committed bool
		status    int
		size      int64
		before    int // calls of a function that was registered around the guard
		same      bool
	}
	seen := make(chan sight, 10)
	e := newEcho()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r, w := c.Request(), c.Response()
			var s sight
			w.Before(func() { s.before++ })
			s.err = next(c)
			s.committed, s.status, s.size = w.Committed, w.Status, w.Size
			s.same = c.Request() == r && c.Response() == w
			seen <- s
			return s.err
		}
	})
	answered := 0
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if c.Response().Committed {
			return
		}
		answered++
		_ = c.String(http.StatusTeapot, err.Error())
	}
	e.POST("/fails", func(echo.Context) error { return errDatabase }, idempotent(t, locks).Wrap)
	e.POST("/works", func(c echo.Context) error { return c.String(http.StatusCreated, "done") }, idempotent(t, locks).Wrap)
	srv := serve(t, e)
	for path, want := range map[string]sight{
		"/fails": {
			err: errDatabase, committed: true,
			status: http.StatusTeapot, size: int64(len(errDatabase.Error())), before: 1, same: true,
		},
		"/works": {committed: true, status: http.StatusCreated, size: 4, before: 1, same: true},
	} {
		if a := post(t, srv, path, path[1:]); a.status != want.status || len(a.body) != int(want.size) {
			t.Errorf("%s: answered %+v", path, a)
		}
		if got := <-seen; got != want {
			t.Errorf("%s: middlewares around the guard see %+v, want %+v", path, got, want)
		}
	}
	if answered != 1 {
		t.Errorf("the error was answered %d times, want once", answered)
	}
}

// TestErrorsAreAnsweredUnderTheLock: no other request of the key runs while the error handler writes.
func TestErrorsAreAnsweredUnderTheLock(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	e := newEcho()
	var held []bool
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if !c.Response().Committed {
			_, found := core.TokenFrom(c.Request().Context())
			held = append(held, found)
			_ = c.String(http.StatusTeapot, err.Error())
		}
	}
	guard := echo4lock.Exclusive(locks.Mutex, httplock.Constant("all"), httplock.WithAskTimeout(patience))
	e.POST("/", func(echo.Context) error { return errDatabase }, guard)
	if a := post(t, serve(t, e), "/", "k"); a.status != http.StatusTeapot || !slices.Equal(held, []bool{true}) {
		t.Errorf("status %d, held %v: want that the error is answered once, under the lock", a.status, held)
	}
}

// TestFailureIsRecordedFirst: a failure is recorded before the client is told of it, so its next request runs.
func TestFailureIsRecordedFirst(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if !c.Response().Committed {
			_ = c.String(http.StatusBadGateway, err.Error()+strings.Repeat("!", 100_000)) // more than the server buffers
		}
	}
	e.POST("/", func(echo.Context) error { return errDatabase }, idempotent(t, newLocks(t)).Wrap)
	srv := serve(t, e)
	for range 20 {
		if a := post(t, srv, "/", "k"); a.status != http.StatusBadGateway || len(a.body) < 100_000 {
			t.Fatalf("status %d, %d bytes: want that each request runs and fails", a.status, len(a.body))
		}
	}
}

// TestRefusals: Echo's error handler answers refused requests if it is asked to.
func TestRefusals(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	var conflicts []string
	render := echo4lock.WithRefusalHandler(func(c echo.Context, conflict *httplock.Conflict) error {
		conflicts = append(conflicts, conflict.Code+" "+c.Path())
		return echo.NewHTTPError(conflict.Status, conflict.Code).SetInternal(conflict)
	})
	silent := echo4lock.WithRefusalHandler(func(echo.Context, *httplock.Conflict) error { return nil })
	e := newEcho()
	var around error
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { around = next(c); return around }
	})
	handler := func(c echo.Context) error { return c.NoContent(http.StatusCreated) }
	e.POST("/rendered", handler, idempotent(t, locks, render).Wrap)
	e.POST("/silent", handler, idempotent(t, locks, silent).Wrap)
	e.POST("/default", handler, idempotent(t, locks).Wrap)
	srv := serve(t, e)
	for path, want := range map[string]string{
		"/rendered": "{\"message\":\"key-invalid\"}\n",
		"/silent":   `"code":"key-invalid"`,
		"/default":  `"code":"key-invalid"`,
	} {
		if a := post(t, srv, path, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: answered %d %q, want 400 %q", path, a.status, a.body, want)
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
