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
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// streamLimit is how many bytes of body are read ahead at most if fiber streams bodies.
const streamLimit = 1 << 20

// requestOf returns the request for the guard. fiber uses its buffers again, so everything in it is a copy but the body, of which
// the guard copies what it keeps.
func requestOf(c fiber.Ctx, v *visit) (*http.Request, error) {
	ctx, in := c.RequestCtx(), c.Request()
	target := string(ctx.RequestURI())
	pattern := patternOf(c)
	if !c.App().Config().CaseSensitive {
		target = spelled(target, pattern)
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}
	base := context.WithValue(c.Context(), visitKey{}, v)
	if c.App().Config().UnescapePath {
		base = httpguard.WithDecodedPaths(base)
	}
	r := (&http.Request{
		Method: string(ctx.Method()), URL: u, RequestURI: target, Host: string(ctx.Host()), RemoteAddr: ctx.RemoteAddr().String(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, TLS: ctx.TLSConnectionState(), Header: http.Header{},
	}).WithContext(base)
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
	route, params := c.Route().Path, c.Route().Params
	var segments []string
	for segment := range strings.SplitSeq(strings.Trim(route, "/"), "/") {
		text, used := patternSegment(segment, params)
		empty := used > 0 && strings.HasSuffix(segment, "?") && c.Params(params[0]) == ""
		if params = params[used:]; !empty {
			segments = append(segments, text)
		}
	}
	pattern := "/" + strings.Join(segments, "/")
	if pattern == "/" || strings.HasSuffix(route, "/") && c.App().Config().StrictRouting {
		return strings.TrimSuffix(pattern, "/") + "/{$}"
	}
	return pattern
}

// patternSegment returns a segment of a route of fiber as a pattern, and how many of the parameters it has.
func patternSegment(segment string, params []string) (pattern string, used int) {
	var text strings.Builder
	for i := 0; i < len(segment); i++ {
		switch b := segment[i]; {
		case b == '\\' && i+1 < len(segment):
			i++
			text.WriteString(url.PathEscape(segment[i : i+1]))
		case (b == '*' || b == '+') && used < len(params):
			used++
			text.WriteString("{rest...}")
		case b == ':' && used < len(params) && strings.HasPrefix(segment[i+1:], params[used]):
			i += len(params[used])
			text.WriteString("{" + params[used] + "}")
			used++
			if strings.HasPrefix(segment[i+1:], "<") { // what the value has to be
				if end := strings.LastIndexByte(segment, '>'); end > i {
					i = end
				}
			}
			if strings.HasPrefix(segment[i+1:], "?") {
				i++
			}
		default:
			text.WriteByte(b)
		}
	}
	return text.String(), used
}

// spelled returns the target of a request with the segments that the route has word for word spelled as there: /ORDERS and /orders are one route
// unless fiber is told otherwise.
func spelled(target, pattern string) string {
	path, query, asked := strings.Cut(target, "?")
	words, segments := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i := range min(len(words), len(segments)) {
		if strings.HasSuffix(words[i], "...}") {
			break
		}
		if strings.EqualFold(words[i], segments[i]) {
			segments[i] = words[i]
		}
	}
	path = strings.Join(segments, "/")
	if asked {
		path += "?" + query
	}
	return path
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
// It returns nil for any other request, and once the key function has returned, because fiber uses its contexts again.
func Context(r *http.Request) fiber.Ctx { return hosted.Context[fiber.Ctx](r) }

// ByClientIP identifies requests by the address of the client as c.IP returns it: an IPv4 address or the /64
// network of an IPv6 address. Many clients may share one, so prefer the logged-in user: [httplock.ByContext].
//
// Behind a proxy, set fiber's ProxyHeader and TrustProxy with the addresses of that proxy. A client whose own header is trusted gets any
// address, and with it the lock of another client, or one that no other client asks for.
func ByClientIP() httplock.KeyFunc {
	return hosted.ByClientIP(func(c fiber.Ctx) string { return c.IP() }, "fiberlock.ByClientIP")
}
