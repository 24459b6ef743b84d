package frameworks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/conformance/http"
)

// newEcho returns an Echo that logs nothing.
func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	return e
}

func TestEcho(t *testing.T) {
	conform(t, true, func(routes ...httpconformance.Route) http.Handler {
		e := newEcho()
		for _, route := range routes {
			guards := []echo.MiddlewareFunc{tellRoute}
			for _, g := range route.Guards {
				guards = append(guards, echo.WrapMiddleware(asMiddleware(g)))
			}
			e.Any(strings.ReplaceAll(route.Path, "{id}", ":id"), echo.WrapHandler(route.Handler), guards...)
		}
		return e
	})
}

var errDatabase = errors.New("the database is away")

// lateAnswer is how a handler of Echo ends, and what the client and a retry get.
type lateAnswer struct {
	handler  echo.HandlerFunc
	around   echo.MiddlewareFunc // the guard, if not nil
	status   int
	state    core.State // with RetryFailures
	held     core.State // with HoldFailures
	replayed bool       // if it is completed
}

func lateAnswers() map[string]lateAnswer {
	httpError := func(status int) echo.HandlerFunc {
		return func(echo.Context) error { return echo.NewHTTPError(status) }
	}
	fail := func(echo.Context) error { return errDatabase }
	timeout := echomiddleware.ContextTimeout(time.Hour)
	return map[string]lateAnswer{
		"nothing": {
			handler: func(echo.Context) error { return nil }, status: 200, held: core.StateUnknown,
		},
		"answered": {
			handler: func(c echo.Context) error { return c.String(201, "done") }, status: 201,
			state: core.StateCompleted, held: core.StateCompleted, replayed: true,
		},
		"no content": {
			handler: func(c echo.Context) error { return c.NoContent(204) }, status: 204,
			state: core.StateCompleted, held: core.StateCompleted, replayed: true,
		},
		"error":          {handler: fail, status: 500, held: core.StateUnknown},
		"HTTP error 503": {handler: httpError(503), status: 503, held: core.StateUnknown},
		"HTTP error 409": {handler: httpError(409), status: 409},
		"HTTP error 404": {
			handler: httpError(404), status: 404, state: core.StateCompleted, held: core.StateCompleted, replayed: true,
		},
		"error, with a deadline around": {handler: fail, around: timeout, status: 500, held: core.StateUnknown},
		"HTTP error 404, with a deadline around": {
			handler: httpError(404), around: timeout, status: 404,
			state: core.StateCompleted, held: core.StateCompleted, replayed: true,
		},
		"error, reported by a middleware": {
			handler: fail, status: 500, held: core.StateUnknown,
			around: func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					if err := next(c); err != nil {
						c.Error(err) // Echo's logger does it like that
					}
					return nil
				}
			},
		},
		"panic": {
			handler: func(echo.Context) error { panic(errDatabase) }, around: echomiddleware.Recover(), status: 500,
			held: core.StateUnknown,
		},
		"panic behind an answer": {
			handler: func(c echo.Context) error { _ = c.String(201, "not sent"); panic(errDatabase) },
			around:  echomiddleware.Recover(), status: 500, held: core.StateUnknown,
		},
		"declared completed": {
			handler: func(c echo.Context) error {
				if err := core.Complete(c.Request().Context()); err != nil {
					return err
				}
				return errDatabase
			},
			status: 500, state: core.StateCompleted, held: core.StateCompleted, replayed: true,
		},
	}
}

// TestEchoAnswersAround: an error that Echo answers, but not through the writer of the guard, is no answer of the handler:
// the failure policy decides.
func TestEchoAnswersAround(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	fail := func(echo.Context) error { return errDatabase }
	putBack := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			response := c.Response()
			defer c.SetResponse(response)
			return next(c)
		}
	}
	for name, test := range map[string]struct {
		around echo.MiddlewareFunc
		failed echo.HTTPErrorHandler
		status int // 0 if the connection breaks
	}{
		//lint:ignore SA1019 services still have it
		"timeout":      {around: echomiddleware.TimeoutWithConfig(echomiddleware.TimeoutConfig{Timeout: time.Hour}), status: 500},
		"put back":     {around: putBack, status: 500},
		"body dump":    {around: echomiddleware.BodyDump(func(echo.Context, []byte, []byte) {}), status: 500},
		"panic":        {failed: func(error, echo.Context) { panic(errDatabase) }},
		"silent":       {failed: func(error, echo.Context) {}, status: 200},
		"put back 404": {around: putBack, failed: func(_ error, c echo.Context) { _ = c.String(404, "none") }, status: 404},
	} {
		for policy, want := range map[core.FailurePolicy]core.State{
			core.RetryFailures: core.StateNone, core.HoldFailures: core.StateUnknown,
		} {
			t.Run(name+map[bool]string{true: ", held"}[policy == core.HoldFailures], func(t *testing.T) {
				t.Parallel()
				e, runs := newEcho(), 0
				if test.around != nil {
					e.Use(test.around)
				}
				if test.failed != nil {
					e.HTTPErrorHandler = test.failed
				}
				guard := httplock.Idempotent(locks, httplock.Unscoped(), unhurried(core.WithFailurePolicy(policy))...)
				e.POST("/orders/:id", func(c echo.Context) error {
					runs++
					return fail(c)
				}, echo.WrapMiddleware(guard))
				aroundTheGuard(t, locks, e, test.status, want, &runs)
			})
		}
	}
}

// aroundTheGuard sends a request and a retry of it to a handler that fails, and whose failure the guard has not seen.
func aroundTheGuard(t *testing.T, locks *core.Client, h http.Handler, status int, want core.State, runs *int) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // handlers of errors panic on purpose
	srv.Start()
	defer srv.Close()
	key := strings.NewReplacer(",", "", "/", "").Replace(t.Name())
	if status != 0 {
		if first, body := post(t, srv, key); first.StatusCode != status {
			t.Errorf("status %d, want %d: %s", first.StatusCode, status, body)
		}
	} else if resp, err := send(t, srv, key); err == nil {
		_ = resp.Body.Close()
		t.Errorf("status %d, want a broken connection", resp.StatusCode)
	}
	if got := awaitEnd(t, locks, key); got != want {
		t.Errorf("the record is %q, want %q", got, want)
	}
	if want == core.StateUnknown {
		if again, body := post(t, srv, key); again.StatusCode != http.StatusConflict || !strings.Contains(body, "outcome-unknown") {
			t.Errorf("retry got %d %q, want 409 outcome-unknown", again.StatusCode, body)
		}
	}
	if *runs != 1 {
		t.Errorf("%d runs, want 1", *runs)
	}
}

// What Echo's error handler writes after the guard has returned reaches the client, and counts.
func TestEchoAnswersLate(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for name, test := range lateAnswers() {
		for policy, want := range map[core.FailurePolicy]core.State{
			core.RetryFailures: test.state, core.HoldFailures: test.held,
		} {
			t.Run(name+map[bool]string{true: ", held"}[policy == core.HoldFailures], func(t *testing.T) {
				t.Parallel()
				e, runs := newEcho(), 0
				if test.around != nil {
					e.Use(test.around)
				}
				guard := httplock.Idempotent(locks, httplock.Unscoped(), unhurried(core.WithFailurePolicy(policy))...)
				e.POST("/orders/:id", func(c echo.Context) error {
					runs++
					return test.handler(c)
				}, echo.WrapMiddleware(guard))
				srv := httptest.NewServer(e)
				defer srv.Close()
				key := strings.NewReplacer(",", "", "/", "").Replace(t.Name())
				first, body := post(t, srv, key)
				if first.StatusCode != test.status {
					t.Errorf("status %d, want %d: %s", first.StatusCode, test.status, body)
				}
				if want == core.StateCompleted { // it is recorded when the request has ended
					awaitEnd(t, locks, key)
				}
				if got := awaitEnd(t, locks, key); got != want {
					t.Fatalf("the record is %q, want %q", got, want)
				}
				again, replay := post(t, srv, key)
				switch {
				case want == core.StateCompleted && test.replayed:
					if again.Header.Get("Idempotency-Replayed") != "true" || again.StatusCode != test.status || replay != body {
						t.Errorf("retry got %d %q, %v, want a replay of %d %q",
							again.StatusCode, replay, again.Header, test.status, body)
					}
				case want == core.StateUnknown:
					if again.StatusCode != http.StatusConflict || !strings.Contains(replay, "outcome-unknown") {
						t.Errorf("retry got %d %q, want 409 outcome-unknown", again.StatusCode, replay)
					}
				}
				if wantRuns := 1 + map[bool]int{true: 1}[want == core.StateNone]; runs != wantRuns {
					t.Errorf("%d runs, want %d", runs, wantRuns)
				}
			})
		}
	}
}

// A failure is recorded before the client is told of it, so its next request runs.
func TestEchoFailureIsRecordedFirst(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	e := newEcho()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		_ = c.String(http.StatusBadGateway, err.Error()+strings.Repeat("!", 100_000)) // more than the server buffers
	}
	guard := httplock.Idempotent(locks, httplock.Unscoped(), unhurried()...)
	e.POST("/orders/:id", func(echo.Context) error { return errDatabase }, echo.WrapMiddleware(guard))
	srv := httptest.NewServer(e)
	defer srv.Close()
	for range 50 {
		resp, body := post(t, srv, "k")
		if resp.StatusCode != http.StatusBadGateway || len(body) < 100_000 {
			t.Fatalf("status %d, %d bytes: want that each request runs and fails", resp.StatusCode, len(body))
		}
	}
}

// While the answer is not known yet, others wait for it, and get what it is in the end.
func TestEchoWaitersGetTheLateAnswer(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	e := newEcho()
	returned, answer := make(chan struct{}, 10), make(chan struct{})
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			returned <- struct{}{}
			<-answer
			return err
		}
	})
	guard := httplock.Idempotent(locks, httplock.Unscoped(), unhurried(core.WithWait(patience))...)
	e.POST("/orders/:id", func(echo.Context) error { return echo.NewHTTPError(404, "no such order") },
		echo.WrapMiddleware(guard))
	srv := httptest.NewServer(e)
	defer srv.Close()
	type got struct {
		status   int
		replayed bool
		body     string
	}
	answers := make(chan got, 2)
	ask := func() {
		resp, body := post(t, srv, "k")
		answers <- got{resp.StatusCode, resp.Header.Get("Idempotency-Replayed") == "true", body}
	}
	go ask()
	<-returned
	if state := stateOf(t, locks, "k"); state != core.StateRunning {
		t.Errorf("the record is %q before the answer is written, want it in progress", state)
	}
	go ask()
	close(answer)
	one, other := <-answers, <-answers
	if one.replayed == other.replayed || one.body != other.body || one.status != 404 || other.status != 404 {
		t.Errorf("got %+v and %+v, want the same answer, once replayed", one, other)
	}
}

// Without a server the end of a request is not known: the handler counts as one that did not answer, and the client gets
// its answer.
func TestEchoWithoutServer(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for policy, again := range map[core.FailurePolicy]int{core.RetryFailures: 503, core.HoldFailures: 409} {
		e := newEcho()
		guard := httplock.Idempotent(locks, httplock.Unscoped(), unhurried(core.WithFailurePolicy(policy))...)
		e.POST("/", func(echo.Context) error { return echo.NewHTTPError(503) }, echo.WrapMiddleware(guard))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, want := range []int{503, again} {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
			r.Header.Set("Idempotency-Key", fmt.Sprint("k", policy))
			w := httptest.NewRecorder()
			if e.ServeHTTP(w, r); w.Code != want {
				t.Errorf("policy %d: status %d, want %d", policy, w.Code, want)
			}
		}
	}
}

// A judge that panics when the request has ended neither ends the process nor keeps the key.
func TestEchoJudgePanicsLate(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	e := newEcho()
	judge := func(httplock.Outcome) httplock.Disposition { panic("judge") }
	guard := httplock.Idempotent(locks, httplock.Unscoped(), unhurried(httplock.WithCompletion(judge))...)
	e.POST("/orders/:id", func(echo.Context) error { return nil }, echo.WrapMiddleware(guard))
	logged := make(chan string, 10)
	srv := httptest.NewUnstartedServer(e)
	srv.Config.ErrorLog = log.New(lines(logged), "", 0)
	srv.Start()
	defer srv.Close()
	if resp, _ := post(t, srv, "k"); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	if state := awaitEnd(t, locks, "k"); state != core.StateNone {
		t.Errorf("the record is %q, want none", state)
	}
	if line := <-logged; !strings.Contains(line, "panic at the end of a run: judge") {
		t.Errorf("logged %q", line)
	}
}

// lines is a writer that sends what is written.
type lines chan<- string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
