package echolock_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/labstack/echo/v5"
	echomiddleware "github.com/labstack/echo/v5/middleware"

	"github.com/holdfast-go/holdfast/core"
	echolock "github.com/holdfast-go/holdfast/middleware/echo"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	echoconformance "github.com/holdfast-go/holdfast/tests/conformance/echo"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyWaitingMain(m) }

// newEcho returns an Echo that logs nothing.
func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return e
}

type (
	handler    = echoconformance.Handler[*echo.Context]
	middleware = echoconformance.Middleware[*echo.Context]
)

// ours returns a middleware of Echo as one of the suite.
func ours(m echo.MiddlewareFunc) middleware { return func(next handler) handler { return m(next) } }

// echos returns middlewares of the suite as Echo's.
func echos(chain []middleware) (all []echo.MiddlewareFunc) {
	for _, m := range chain {
		all = append(all, func(next echo.HandlerFunc) echo.HandlerFunc { return m(next) })
	}
	return all
}

func newApp(failed func(*echo.Context, error)) echoconformance.App[*echo.Context] {
	e := newEcho()
	if failed != nil {
		e.HTTPErrorHandler = failed
	}
	return echoconformance.App[*echo.Context]{
		Handler: e,
		Use:     func(m middleware) { e.Use(echos([]middleware{m})...) },
		Handle:  func(method, path string, h handler, chain ...middleware) { e.Add(method, path, h, echos(chain)...) },
		Group: func(prefix string, chain ...middleware) func(string, handler) {
			group := e.Group(prefix, echos(chain)...)
			return func(path string, h handler) { group.POST(path, h) }
		},
	}
}

func guardOf(g *echolock.Guard, err error) (echoconformance.Guard[*echo.Context], error) {
	if err != nil {
		return echoconformance.Guard[*echo.Context]{}, err
	}
	return echoconformance.Guard[*echo.Context]{Wrap: ours(g.Wrap), PeekKey: g.PeekKey}, nil
}

func TestEcho(t *testing.T) {
	t.Parallel()
	echoconformance.Run(t, echoconformance.Adapter[*echo.Context]{
		New: newApp,
		NewExclusive: func(strategy core.Strategy, key httplock.KeyFunc, opts ...httplock.Option) (middleware, error) {
			guard, err := echolock.NewExclusive(strategy, key, opts...)
			return ours(guard), err
		},
		NewOnce: func(locks *core.Client, key httplock.KeyFunc, opts ...httplock.Option) (echoconformance.Guard[*echo.Context], error) {
			return guardOf(echolock.NewOnce(locks, key, opts...))
		},
		NewIdempotent: func(locks *core.Client, scope httplock.KeyFunc, opts ...httplock.Option) (echoconformance.Guard[*echo.Context], error) {
			return guardOf(echolock.NewIdempotent(locks, scope, opts...))
		},
		Refusal: func(handler func(*echo.Context, *httplock.Conflict) error) httplock.Option {
			return echolock.WithRefusalHandler(handler)
		},
		ClientIP: echolock.ByClientIP(),
		Context:  echolock.Context,
		HTTPError: func(status int, text string, cause error) error {
			err := echo.NewHTTPError(status, text)
			if cause == nil {
				return err
			}
			return err.Wrap(cause)
		},
		Report: func(c *echo.Context, err error) { c.Echo().HTTPErrorHandler(c, err) },
		Writer: (*echo.Context).Response,
		Response: func(c *echo.Context) echoconformance.Response {
			r, err := echo.UnwrapResponse(c.Response())
			if err != nil {
				return echoconformance.Response{}
			}
			return echoconformance.Response{Committed: r.Committed, Status: r.Status, Size: r.Size}
		},
		SetStatus: func(c *echo.Context, status int) { responseOf(t, c).Status = status },
		Before:    func(c *echo.Context, fn func()) { responseOf(t, c).Before(fn) },
		Gzip:      ours(echomiddleware.Gzip()),
		BodyLimit: ours(echomiddleware.BodyLimit(5)),
		Recover:   ours(echomiddleware.Recover()),
		Dump:      ours(echomiddleware.BodyDump(func(*echo.Context, []byte, []byte, error) {})),
		PutBack: func(next handler) handler {
			return func(c *echo.Context) error {
				response := c.Response()
				defer c.SetResponse(response)
				return next(c)
			}
		},
	})
}

// responseOf returns Echo's own response.
func responseOf(t testing.TB, c *echo.Context) *echo.Response {
	r, err := echo.UnwrapResponse(c.Response())
	if err != nil {
		t.Errorf("no response of Echo: %v", err)
		return new(echo.Response)
	}
	return r
}

// TestMistakes: what is wrong with the arguments panics where the guard is made.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(){
		"zero guard":  func() { new(echolock.Guard).Wrap(func(*echo.Context) error { return nil }) },
		"no strategy": func() { echolock.Exclusive(nil, httplock.Unscoped()) },
		"no client":   func() { echolock.Once(nil, httplock.Unscoped()) },
		"no scope":    func() { echolock.Idempotent(new(core.Client), nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}
