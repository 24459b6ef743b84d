package echo4lock_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"

	"github.com/holdfast-go/holdfast/core"
	echo4lock "github.com/holdfast-go/holdfast/middleware/echo4"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	echoconformance "github.com/holdfast-go/holdfast/tests/conformance/echo"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyWaitingMain(m) }

// newEcho returns an Echo that logs nothing.
func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	return e
}

type (
	handler    = echoconformance.Handler[echo.Context]
	middleware = echoconformance.Middleware[echo.Context]
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

func newApp(failed func(echo.Context, error)) echoconformance.App[echo.Context] {
	e := newEcho()
	if failed != nil {
		e.HTTPErrorHandler = func(err error, c echo.Context) { failed(c, err) }
	}
	return echoconformance.App[echo.Context]{
		Handler: e,
		Use:     func(m middleware) { e.Use(echos([]middleware{m})...) },
		Handle:  func(method, path string, h handler, chain ...middleware) { e.Add(method, path, h, echos(chain)...) },
		Group: func(prefix string, chain ...middleware) func(string, handler) {
			group := e.Group(prefix, echos(chain)...)
			return func(path string, h handler) { group.POST(path, h) }
		},
	}
}

func guardOf(g *echo4lock.Guard, err error) (echoconformance.Guard[echo.Context], error) {
	if err != nil {
		return echoconformance.Guard[echo.Context]{}, err
	}
	return echoconformance.Guard[echo.Context]{Wrap: ours(g.Wrap), PeekKey: g.PeekKey}, nil
}

func TestEcho(t *testing.T) {
	t.Parallel()
	echoconformance.Run(t, echoconformance.Adapter[echo.Context]{
		New: newApp,
		NewExclusive: func(strategy core.Strategy, key httplock.KeyFunc, opts ...httplock.Option) (middleware, error) {
			guard, err := echo4lock.NewExclusive(strategy, key, opts...)
			return ours(guard), err
		},
		NewOnce: func(locks *core.Client, key httplock.KeyFunc, opts ...httplock.Option) (echoconformance.Guard[echo.Context], error) {
			return guardOf(echo4lock.NewOnce(locks, key, opts...))
		},
		NewIdempotent: func(locks *core.Client, scope httplock.KeyFunc, opts ...httplock.Option) (echoconformance.Guard[echo.Context], error) {
			return guardOf(echo4lock.NewIdempotent(locks, scope, opts...))
		},
		Refusal: func(handler func(echo.Context, *httplock.Conflict) error) httplock.Option {
			return echo4lock.WithRefusalHandler(handler)
		},
		ClientIP: echo4lock.ByClientIP(),
		Context:  echo4lock.Context,
		HTTPError: func(status int, text string, cause error) error {
			if text == "" {
				return echo.NewHTTPError(status)
			}
			return echo.NewHTTPError(status, text).SetInternal(cause)
		},
		Report: func(c echo.Context, err error) { c.Error(err) },
		Writer: func(c echo.Context) http.ResponseWriter { return c.Response() },
		Response: func(c echo.Context) echoconformance.Response {
			r := c.Response()
			return echoconformance.Response{Committed: r.Committed, Status: r.Status, Size: r.Size}
		},
		SetStatus: func(c echo.Context, status int) { c.Response().Status = status },
		Before:    func(c echo.Context, fn func()) { c.Response().Before(fn) },
		Gzip:      ours(echomiddleware.Gzip()),
		BodyLimit: ours(echomiddleware.BodyLimit("5B")),
		Recover:   ours(echomiddleware.Recover()),
		Dump:      ours(echomiddleware.BodyDump(func(echo.Context, []byte, []byte) {})),
		PutBack: func(next handler) handler {
			return func(c echo.Context) error {
				response := c.Response()
				defer c.SetResponse(response)
				return next(c)
			}
		},
		//lint:ignore SA1019 services still have it
		Timeout: ours(echomiddleware.TimeoutWithConfig(echomiddleware.TimeoutConfig{Timeout: time.Hour})),
	})
}

// TestMistakes: what is wrong with the arguments panics where the guard is made.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(){
		"zero guard":  func() { new(echo4lock.Guard).Wrap(func(echo.Context) error { return nil }) },
		"no strategy": func() { echo4lock.Exclusive(nil, httplock.Unscoped()) },
		"no client":   func() { echo4lock.Once(nil, httplock.Unscoped()) },
		"no scope":    func() { echo4lock.Idempotent(new(core.Client), nil) },
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
