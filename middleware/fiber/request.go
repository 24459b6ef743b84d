package fiberlock

import (
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/middleware/internal/hosted"
	"github.com/holdfast-go/holdfast/middleware/internal/request"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// streamLimit is how many bytes of body are read ahead at most if fiber streams bodies.
const streamLimit = 1 << 20

// requestOf returns the request for the guard. fiber uses its buffers again, so everything in it is a copy but the body, of which
// the guard copies what it keeps.
func requestOf(c fiber.Ctx, v *visit) (*http.Request, error) {
	ctx, in := c.RequestCtx(), c.Request()
	target, _, _ := strings.Cut(string(ctx.RequestURI()), "#") // fasthttp reads a fragment as none, net/url as a part of the query
	pattern := patternOf(c)
	if !c.App().Config().CaseSensitive {
		target = hosted.Spelled(target, pattern)
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}
	base := context.WithValue(c.Context(), visitKey{}, v)
	if c.App().Config().UnescapePath {
		base = context.WithValue(base, request.DecodedPathsKey{}, true)
	}
	v.values.Context, v.values.Of = base, valueOf
	r := (&http.Request{
		Method: string(ctx.Method()), URL: u, RequestURI: target, Host: string(ctx.Host()), RemoteAddr: ctx.RemoteAddr().String(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, TLS: ctx.TLSConnectionState(), Header: http.Header{},
	}).WithContext(&v.values)
	for name, value := range in.Header.All() {
		switch key := http.CanonicalHeaderKey(string(name)); key {
		case "Host", "Transfer-Encoding":
		default:
			r.Header[key] = append(r.Header[key], string(value))
		}
	}
	r.Body, r.ContentLength = bodyOf(c)
	if pattern == "" {
		return r, nil
	}
	r.Pattern = r.Method + " " + pattern
	for _, name := range c.Route().Params {
		value := strings.Clone(c.Params(name))
		if text, err := url.PathUnescape(value); err == nil && !c.App().Config().UnescapePath {
			value = text // fiber leaves it escaped
		}
		r.SetPathValue(name, value)
		if strings.HasPrefix(name, "*") || strings.HasPrefix(name, "+") {
			r.SetPathValue("rest", value)
		}
	}
	return r, nil
}

// bodyOf returns the body and its length. One that fiber streams is read when it is asked for, if its length is known to be small.
func bodyOf(c fiber.Ctx) (io.ReadCloser, int64) {
	in := c.Request()
	if !in.IsBodyStream() {
		body := in.Body()
		if len(body) == 0 {
			return http.NoBody, 0
		}
		return io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	switch length := in.Header.ContentLength(); {
	case length < 0: // a guard that compares bodies refuses it for its length
		return http.NoBody, math.MaxInt64
	case length > streamLimit:
		return http.NoBody, int64(length)
	default:
		return &streamed{c: c}, int64(length)
	}
}

// streamed is a body that fiber streams. When it is read, fiber has it as a whole.
type streamed struct {
	c    fiber.Ctx
	body *bytes.Reader
}

func (s *streamed) Read(p []byte) (int, error) {
	if s.body == nil {
		s.body = bytes.NewReader(s.c.Request().Body())
	}
	return s.body.Read(p)
}

func (s *streamed) Close() error { return nil }

// valueOf returns the value that c.Locals has at a key. A text may be in a buffer that fiber uses again.
func valueOf(c fiber.Ctx, key any) any {
	value := c.Value(key)
	if v := reflect.ValueOf(value); v.Kind() == reflect.String {
		return reflect.ValueOf(strings.Clone(v.String())).Convert(v.Type()).Interface()
	}
	return value
}

// patternOf returns the route in the form of [http.ServeMux], empty if fiber has not matched one yet.
func patternOf(c fiber.Ctx) string {
	if !c.Matched() {
		return ""
	}
	route := c.Route()
	return hosted.FiberPattern(route.Path, route.Params, c.App().Config().StrictRouting, func(name string) bool {
		return c.Params(name) == ""
	})
}

// Context returns the fiber.Ctx of the request that a guard hands to a key function, for what a request cannot say:
//
//	import (
//		fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByPrincipal(func(r *http.Request) (string, error) {
//		return session.FromContext(fiberlock.Context(r)).ID(), nil
//	})
//
// It returns nil for any other request, and once the key function has returned, because fiber uses its contexts again. Texts
// from it are valid during the request only; everything in the request of the key function but its body is a copy.
//
// In that request the Pattern is the route in the form of http.ServeMux, "POST /cart/{id}" for "/cart/:id". Its path values are
// fiber's parameters; the ones of "*" and "+" are named "rest" too. For a route that ends in "*" the path of the request counts.
func Context(r *http.Request) fiber.Ctx { return hosted.Context[fiber.Ctx](r) }

// ByClientIP identifies requests by the address of the client as c.IP returns it: an IPv4 address or the /64
// network of an IPv6 address. Many clients may share one, so prefer the logged-in user: [httplock.ByContext].
//
// Behind a proxy, set fiber's ProxyHeader and TrustProxy with the addresses of that proxy. A client whose own header is
// trusted gets any address, and with it the lock of another client, or one that no other client asks for.
func ByClientIP() httplock.KeyFunc {
	return hosted.ByClientIP(func(c fiber.Ctx) string { return c.IP() }, "fiberlock.ByClientIP")
}
