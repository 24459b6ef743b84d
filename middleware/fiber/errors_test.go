package fiberlock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	fiberrecover "github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/holdfast-go/holdfast/core"
	fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var errDatabase = errors.New("the database is away")

// ending is how a handler ends, and what the client and a retry get.
type ending struct {
	handler        fiber.Handler
	around, inside fiber.Handler // the guard, if not nil
	failed         fiber.ErrorHandler
	status         int
	held           int           // the same with HoldFailures, if not 0
	states         [2]core.State // with RetryFailures and with HoldFailures
	guarded        bool          // the handler needs the guard
}

// The states of records after a success, and after a failure.
var (
	done   = [2]core.State{core.StateCompleted, core.StateCompleted}
	failed = [2]core.State{core.StateNone, core.StateUnknown}
)

func endings() map[string]ending {
	httpError := func(status int) fiber.Handler {
		return func(fiber.Ctx) error { return fiber.NewError(status) }
	}
	fail := func(fiber.Ctx) error { return errDatabase }
	panics := func(fiber.Ctx) error { panic(errDatabase) }
	return map[string]ending{
		"nothing":        {handler: func(fiber.Ctx) error { return nil }, status: 200, states: done},
		"answered":       {handler: func(c fiber.Ctx) error { return c.Status(201).JSON("done") }, status: 201, states: done},
		"no content":     {handler: func(c fiber.Ctx) error { return c.SendStatus(204) }, status: 204, states: done},
		"error":          {handler: fail, status: 500, states: failed},
		"HTTP error 503": {handler: httpError(503), status: 503, states: failed},
		"HTTP error 409": {handler: httpError(409), status: 409},
		"HTTP error 404": {handler: httpError(404), status: 404, states: done},
		"answered, then an error": {
			handler: func(c fiber.Ctx) error { return errors.Join(c.Status(201).SendString("done"), errDatabase) },
			status:  500, states: failed,
		},
		"error handler fails": {
			handler: fail, failed: func(fiber.Ctx, error) error { return errDatabase }, status: 500, states: failed,
		},
		"error handler is silent": {
			handler: fail, failed: func(fiber.Ctx, error) error { return nil }, status: 503, held: 409, states: failed,
		},
		"panic, recovered around the guard": {handler: panics, around: fiberrecover.New(), status: 500, states: failed},
		"panic, recovered inside":           {handler: panics, inside: fiberrecover.New(), status: 500, states: failed},
		"declared completed, then an error": {
			handler: func(c fiber.Ctx) error { return errors.Join(core.Complete(c), errDatabase) },
			status:  500, states: done, guarded: true,
		},
		"declared released, then a success": {
			handler: func(c fiber.Ctx) error { return errors.Join(core.Release(c.Context()), c.SendStatus(204)) },
			status:  204, guarded: true,
		},
	}
}

// TestErrors: an error that a handler returns is answered as fiber answers it without the guard, and is recorded as that.
func TestErrors(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for name, test := range endings() {
		for i, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
			name, want, status := name, test.states[i], test.status
			if i == 1 {
				name += ", held"
				if test.held != 0 {
					status = test.held
				}
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				app, runs, failures := fiber.New(fiber.Config{ErrorHandler: test.failed}), 0, 0
				if test.failed == nil {
					app = fiber.New(fiber.Config{ErrorHandler: func(c fiber.Ctx, err error) error {
						failures++
						return fiber.DefaultErrorHandler(c, err)
					}})
				}
				if test.around != nil {
					app.Use(test.around)
				}
				guard := idempotent(t, locks, core.WithFailurePolicy(policy))
				var behind []any
				if test.inside != nil {
					behind = append(behind, test.inside)
				}
				behind = append(behind, fiber.Handler(func(c fiber.Ctx) error {
					runs++
					return test.handler(c)
				}))
				app.Post("/orders/:id", guard.Wrap, behind...)
				app.Post("/plain/:id", behind[0], behind[1:]...)
				srv := serve(t, app)
				key := strings.NewReplacer(",", "", "/", "").Replace(t.Name())
				first := srv.post(t, "/orders/1", key)
				if first.status != status || failures > 1 {
					t.Errorf("status %d, want %d, the error handler called %d times: %s", first.status, status, failures, first.body)
				}
				if got := stateOf(t, guard, key); got != want {
					t.Fatalf("the record is %q, want %q", got, want)
				}
				again := srv.post(t, "/orders/1", key)
				switch want {
				case core.StateCompleted:
					if !again.replayed() || again.status != first.status || again.body != first.body ||
						again.header.Get("Content-Type") != first.header.Get("Content-Type") {
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
				plain := srv.post(t, "/plain/1", key)
				if test.failed == nil && !test.guarded && (plain.status != first.status || plain.body != first.body) {
					t.Errorf("answered %d %q, without the guard %d %q", first.status, first.body, plain.status, plain.body)
				}
			})
		}
	}
}

// TestRefusals: fiber's error handler answers refused requests if it is asked to.
func TestRefusals(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	var conflicts []string
	render := fiberlock.WithRefusalHandler(func(c fiber.Ctx, conflict *httplock.Conflict) error {
		conflicts = append(conflicts, conflict.Code+" "+c.Path())
		return fiber.NewError(conflict.Status, conflict.Code)
	})
	silent := fiberlock.WithRefusalHandler(func(fiber.Ctx, *httplock.Conflict) error { return nil })
	app := fiber.New()
	handler := func(c fiber.Ctx) error { return c.SendStatus(http.StatusCreated) }
	app.Post("/rendered", idempotent(t, locks, render).Wrap, handler)
	app.Post("/silent", idempotent(t, locks, silent).Wrap, handler)
	app.Post("/default", idempotent(t, locks).Wrap, handler)
	srv := serve(t, app)
	for path, want := range map[string]string{
		"/rendered": "key-invalid", "/silent": `"code":"key-invalid"`, "/default": `"code":"key-invalid"`,
	} {
		if a := srv.post(t, path, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: answered %d %q, want 400 %q", path, a.status, a.body, want)
		}
	}
	if !slices.Equal(conflicts, []string{"key-invalid /rendered"}) {
		t.Errorf("refused: %q", conflicts)
	}
}

// TestFieldsAreOneLine: a value with a line break ends no field, whether net/http has recorded it or a handler of refusals sets it.
func TestFieldsAreOneLine(t *testing.T) {
	t.Parallel()
	const value, want = "a\r\nSet-Cookie: session=evil\r\n\r\nevil", "a  Set-Cookie: session=evil    evil"
	locks := newLocks(t)
	first := httplock.Idempotent(locks, httplock.Unscoped(), unhurried()...)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Note", value)
	}))
	req := httptest.NewRequest(http.MethodPost, "/note", strings.NewReader("order"))
	req.Header.Set("Idempotency-Key", "k")
	first.ServeHTTP(httptest.NewRecorder(), req)
	app := fiber.New()
	app.Post("/note", idempotent(t, locks, httplock.WithRefusalHandler(func(w http.ResponseWriter, _ *http.Request, c *httplock.Conflict) {
		w.Header().Set("X-Note", value)
		w.Header()["X-Evil: 1\r\nX-Name"] = []string{"b"}
		w.WriteHeader(c.Status)
	})).Wrap, func(fiber.Ctx) error { return nil })
	srv := serve(t, app)
	for key, status := range map[string]int{"k": http.StatusOK, "": http.StatusBadRequest} {
		a := srv.post(t, "/note", key)
		if a.status != status || a.header.Get("X-Note") != want || a.header["Set-Cookie"] != nil || a.header["X-Evil"] != nil || a.body != "" {
			t.Errorf("key %q: %+v, want %d and X-Note %q", key, a, status, want)
		}
	}
}

// TestMiddlewaresAround: what middlewares around the guard set is in each response once, and they see the status.
func TestMiddlewaresAround(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	var seen []int
	app.Use(func(c fiber.Ctx) error {
		c.Set("X-Request-Id", c.Get("Idempotency-Key"))
		c.Cookie(&fiber.Cookie{Name: "outer", Value: "1"})
		outer := c.Context()
		err := c.Next()
		seen = append(seen, c.Response().StatusCode())
		if c.Context() != outer {
			t.Error("the context of the run is there after it")
		}
		return err
	})
	app.Post("/", idempotent(t, newLocks(t)).Wrap, func(c fiber.Ctx) error {
		c.Cookie(&fiber.Cookie{Name: "inner", Value: "1"})
		c.Set("X-Order", "7")
		return c.Status(201).SendString("done")
	})
	srv := serve(t, app)
	for i, cookies := range []int{2, 1} {
		a := srv.post(t, "/", "k")
		if a.status != 201 || a.body != "done" || a.replayed() != (i == 1) || a.header.Get("X-Order") != "7" ||
			len(a.header["X-Request-Id"]) != 1 || len(a.header["Set-Cookie"]) != cookies {
			t.Errorf("request %d: answered %+v", i, a)
		}
	}
	if !slices.Equal(seen, []int{201, 201}) {
		t.Errorf("the middlewares around the guard saw %d", seen)
	}
}

// TestMistakes: what is wrong with the arguments is told when the guard is made.
func TestMistakes(t *testing.T) {
	t.Parallel()
	locks, key := newLocks(t), httplock.Constant("x")
	for name, made := range map[string]func() error{
		"no strategy": func() error { _, err := fiberlock.NewExclusive(nil, key); return err },
		"no key":      func() error { _, err := fiberlock.NewExclusive(locks.Mutex, nil); return err },
		"no client":   func() error { _, err := fiberlock.NewOnce(nil, key); return err },
		"no scope":    func() error { _, err := fiberlock.NewIdempotent(locks, nil); return err },
		"no handler of refusals": func() error {
			_, err := fiberlock.NewOnce(locks, key, fiberlock.WithRefusalHandler(nil))
			return err
		},
	} {
		if made() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("the zero Guard does not panic")
		}
	}()
	_ = new(fiberlock.Guard).Wrap(nil)
}
