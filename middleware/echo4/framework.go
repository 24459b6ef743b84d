package echo4lock

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/middleware/internal/hosted"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// framework is Echo for the guards.
var framework = hosted.Framework[echo.Context]{
	Request:    echo.Context.Request,
	SetRequest: echo.Context.SetRequest,
	Writer:     func(c echo.Context) http.ResponseWriter { return c.Response() },
	Pattern:    func(c echo.Context) string { return hosted.EchoPattern(c.Path()) },
	PathValues: func(c echo.Context, set func(name, value string)) {
		names := c.ParamNames()
		for i, value := range c.ParamValues() {
			if text, err := url.PathUnescape(value); err == nil && c.Request().URL.RawPath != "" {
				value = text // Echo leaves it escaped
			}
			if i < len(names) {
				set(hosted.EchoWildcard(names[i]), value)
			}
		}
	},
	TooLarge: func(err error) bool {
		var answered *echo.HTTPError
		return errors.As(err, &answered) && answered.Code == http.StatusRequestEntityTooLarge
	},
	Value: func(c echo.Context, key any) any {
		if name, ok := key.(string); ok {
			return c.Get(name)
		}
		return nil
	},
	Serve: serve,
}

// serve calls next with that writer. Echo answers an error when all middlewares have returned; here it does so at once,
// while the guard still holds the key, as Echo's own RequestLogger can. The error is returned all the same, for the
// middlewares around the guard: error handlers of Echo write nothing after a response that was committed.
func serve(c echo.Context, w http.ResponseWriter, _ writer.Full, next func(echo.Context) error) (err error, unanswered bool) {
	real := c.Response()
	response := echo.NewResponse(w, c.Echo())
	response.Status = real.Status
	c.SetResponse(response)
	defer c.SetResponse(real)
	if err = next(c); err == nil || response.Committed {
		return err, false
	}
	c.Error(err)
	if response.Committed && timesOut(real) {
		return nil, false
	}
	return err, !response.Committed
}

// timesOut reports whether w leads to a writer of [http.TimeoutHandler]. Echo's Timeout drops what was written there if it gets
// an error, and has Echo answer that, which takes the response for committed: the client would get an empty 200.
func timesOut(w http.ResponseWriter) bool {
	for {
		outer, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return reflect.TypeOf(w).String() == "*http.timeoutWriter"
		}
		w = outer.Unwrap()
	}
}

// Context returns the echo.Context of the request that a guard hands to a key function, for what a request cannot say:
//
//	import (
//		echo4lock "github.com/holdfast-go/holdfast/middleware/echo4"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByPrincipal(func(r *http.Request) (string, error) {
//		return echo4lock.Context(r).Get("session").(*session).Account.Number, nil
//	})
//
// It returns nil for any other request, and once the key function has returned, because Echo uses its contexts again.
func Context(r *http.Request) echo.Context { return hosted.Context[echo.Context](r) }

// ByClientIP identifies requests by the address of the client as c.RealIP returns it: an IPv4 address or the /64
// network of an IPv6 address. Many clients may share one, so prefer the logged-in user: [httplock.ByContext].
//
// Set Echo's IPExtractor if there is a proxy in front of it, and let it trust that proxy only. A client whose own
// X-Forwarded-For header is trusted gets any address, and with it the lock of another client, or one that no other client asks for.
func ByClientIP() httplock.KeyFunc {
	return hosted.ByClientIP(echo.Context.RealIP, "echo4lock.ByClientIP")
}

// RefusalHandler answers a refused request. It may change the conflict, and call [httplock.Refuse] for the writing. An error that it
// returns is answered by Echo's HTTPErrorHandler. If nothing is written, the guard calls httplock.Refuse.
type RefusalHandler func(c echo.Context, conflict *httplock.Conflict) error

// WithRefusalHandler is [httplock.WithRefusalHandler] for handlers of Echo. To have Echo's HTTPErrorHandler answer refused requests
// as all other errors:
//
//	echo4lock.WithRefusalHandler(func(c echo.Context, conflict *httplock.Conflict) error {
//		return echo.NewHTTPError(conflict.Status, conflict.Code).SetInternal(conflict)
//	})
func WithRefusalHandler(handler RefusalHandler) httplock.Option {
	return httplock.WithRefusalHandler(framework.Refusal(handler))
}
