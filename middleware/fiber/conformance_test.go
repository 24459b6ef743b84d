package fiberlock_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	"github.com/valyala/fasthttp"

	"github.com/holdfast-go/holdfast/core"
	fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	httpconformance "github.com/holdfast-go/holdfast/tests/conformance/http"
)

// TestConformance comes before the parallel tests of the package: it takes all there is of a small machine.
func TestConformance(t *testing.T) {
	httpconformance.Run(t, httpconformance.Adapter{
		Exclusive: func(s core.Strategy, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return fiberlock.NewExclusive(s, key.Func(), opts...)
		},
		Once: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return fiberlock.NewOnce(c, key.Func(), opts...)
		},
		Idempotent: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return fiberlock.NewIdempotent(c, key.Func(), opts...)
		},
		Handler: func(routes ...httpconformance.Route) http.Handler {
			app := fiber.New(fiber.Config{BodyLimit: bodyLimit})
			app.Use(func(c fiber.Ctx) error {
				c.SetContext(c.Value(requestContext{}).(context.Context))
				return c.Next()
			})
			for _, route := range routes {
				var chain []any
				for _, guard := range route.Guards {
					chain = append(chain, handlerOf(guard))
				}
				chain = append(chain, asFiber(route.Handler))
				app.All(strings.ReplaceAll(route.Path, "{id}", ":id"), chain[0], chain[1:]...)
			}
			return asHTTP(app)
		},
		Buffers:     true,
		OneProtocol: true,
		Lacks:       lacks,
	})
}

// lacks has what fiber cannot do, or what its tests cannot reach.
var lacks = func() map[string]string {
	lacks := make(map[string]string)
	for why, names := range map[string][]string{
		"fiber sends a response when all handlers have returned: a handler has no http.ResponseController": {
			"ResponseController", "Hijack", "TrailersAreNotLostInReplays",
		},
		"a stream of fiber begins when all handlers have returned, and is not recorded: see TestStreams": {
			"StreamThatStoppedIsNoAnswer", "DetachedStreamThatStopped", "StreamIsSentAtOnce",
		},
		"fasthttp has the whole body before it calls a handler": {
			"TruncatedBodyIsTold", "StalledBodyIsTold", "ChunkedBodiesAreCutShort", "BodyOverTheLimitIsRefused", "NoBodyRunsUnread",
			"BodiesTakeBoundedMemory", "BodyMemoryIsShared", "ClientLeavesWhileItSends",
		},
		"fiber keeps the body, whoever has read it in front of the guard": {
			"BodyReadInFrontIsRefused", "FormParsedInFrontIsCompared", "FormIsTheSameWhereverItIsParsed", "EmptyBodyIsNotTakenForReadOne",
			"HalfABodyIsNotCompared",
		},
		"nothing in front of an app of fiber changes the path that its guards see": {
			"RoutesOfOnePatternAreToldApart", "AnswersStayWithTheirRoute", "KeysOfRequestsAreThoseOfPatterns",
		},
	} {
		for _, name := range names {
			lacks[name] = why
		}
	}
	return lacks
}()

// handlerOf returns a guard of either form as a part of a chain.
func handlerOf(guard httpconformance.Guard) fiber.Handler {
	if g, ok := guard.(*fiberlock.Guard); ok {
		return g.Wrap
	}
	return guard.(fiber.Handler)
}

const bodyLimit = 4 << 20

// requestContext is where a request of fiber has the context of the one of net/http.
type requestContext struct{}

// asHTTP has an app answer requests of net/http. fiber's own adaptor loses the context and repeated fields.
func asHTTP(app *fiber.App) http.Handler {
	handle := app.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// fasthttp does not call a handler without the whole body.
		body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit+1))
		switch {
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
			return
		case len(body) > bodyLimit:
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		var in fasthttp.Request
		in.Header.SetMethod(r.Method)
		in.SetRequestURI(r.RequestURI)
		in.SetHost(r.Host)
		for name, values := range r.Header {
			for _, value := range values {
				in.Header.Add(name, value)
			}
		}
		in.SetBody(body)
		addr, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
		if err != nil {
			addr = &net.TCPAddr{}
		}
		var ctx fasthttp.RequestCtx
		ctx.Init(&in, addr, silent{})
		ctx.SetUserValue(requestContext{}, r.Context())
		for name, values := range w.Header() {
			for _, value := range values {
				ctx.Response.Header.Add(name, value)
			}
		}
		handle(&ctx)
		clear(w.Header())
		if !ctx.Response.IsBodyStream() && len(ctx.Response.Body()) == 0 {
			ctx.Response.Header.SetNoDefaultContentType(true) // as fasthttp writes it
		}
		for name, value := range ctx.Response.Header.All() {
			w.Header().Add(string(name), string(value))
		}
		w.WriteHeader(ctx.Response.StatusCode())
		_ = ctx.Response.BodyWriteTo(w)
		_ = ctx.Response.CloseBodyStream()
	})
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// noting is a writer that knows whether there is a response.
type noting struct {
	*httptest.ResponseRecorder
	wrote bool
}

func (n *noting) WriteHeader(status int) {
	n.wrote = n.wrote || status >= http.StatusOK
	n.ResponseRecorder.WriteHeader(status)
}

func (n *noting) Write(p []byte) (int, error) {
	n.wrote = true
	return n.ResponseRecorder.Write(p)
}

func (n *noting) WriteString(s string) (int, error) {
	n.wrote = true
	return n.ResponseRecorder.WriteString(s)
}

// asFiber makes a handler of fiber of one of net/http, on the goroutine and with the context that fiber has.
func asFiber(h http.Handler) fiber.Handler {
	return func(c fiber.Ctx) error {
		r, err := adaptor.ConvertRequest(c, true)
		if err != nil {
			return err
		}
		w := &noting{ResponseRecorder: httptest.NewRecorder()}
		out := c.Response()
		for name, value := range out.Header.All() {
			if string(name) != fiber.HeaderContentType {
				w.Header().Add(string(name), string(value))
			}
		}
		h.ServeHTTP(w, r.WithContext(c.Context()))
		header := w.Header()
		if w.wrote {
			header = w.Result().Header
		}
		for name, values := range header {
			out.Header.Del(name)
			for _, value := range values {
				out.Header.Add(name, value)
			}
		}
		if w.wrote {
			c.Status(w.Code)
			out.SetBody(w.Body.Bytes())
		}
		return nil
	}
}
