package echolock

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/middleware/internal/hosted"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// framework is Echo for the guards.
var framework = hosted.Framework[*echo.Context]{
	Request:    (*echo.Context).Request,
	SetRequest: (*echo.Context).SetRequest,
	Writer:     (*echo.Context).Response,
	Pattern:    func(c *echo.Context) string { return hosted.EchoPattern(c.Path()) },
	PathValues: func(c *echo.Context, set func(name, value string)) {
		for _, p := range c.PathValues() {
			set(hosted.EchoWildcard(p.Name), p.Value)
		}
	},
	TooLarge: func(err error) bool { return echo.StatusCode(err) == http.StatusRequestEntityTooLarge },
	Value: func(c *echo.Context, key any) any {
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
func serve(c *echo.Context, w http.ResponseWriter, _ writer.Full, next func(*echo.Context) error) (err error, unanswered bool) {
	real := c.Response()
	response := echo.NewResponse(w, c.Logger())
	if outer, err := echo.UnwrapResponse(real); err == nil {
		response.Status = outer.Status
	}
	c.SetResponse(response)
	defer c.SetResponse(real)
	if err = next(c); err == nil || response.Committed {
		return err, false
	}
	c.Echo().HTTPErrorHandler(c, err)
	return err, !response.Committed
}

// Context returns the echo.Context of the request that a guard hands to a key function, for what a request cannot say:
//
//	import (
//		echolock "github.com/holdfast-go/holdfast/middleware/echo"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByPrincipal(func(r *http.Request) (string, error) {
//		return echolock.Context(r).Get("session").(*session).Account.Number, nil
//	})
//
// It returns nil for any other request, and once the key function has returned, because Echo uses its contexts again.
//
// In the request of the key function the Pattern is the route in the form of http.ServeMux, "POST /cart/{id}" for "/cart/:id". Its
// path values are Echo's parameters; the one of "*" is named "rest". For a route that ends in "*" the path of the request counts.
func Context(r *http.Request) *echo.Context { return hosted.Context[*echo.Context](r) }

// ByClientIP identifies requests by the address of the client as c.RealIP returns it: an IPv4 address or the /64
// network of an IPv6 address. Many clients may share one, so prefer the logged-in user: [httplock.ByContext].
//
// Set Echo's IPExtractor if there is a proxy in front of it, and let it trust that proxy only. A client whose own
// X-Forwarded-For header is trusted gets any address, and with it the lock of another client, or one that no other client asks for.
func ByClientIP() httplock.KeyFunc {
	return hosted.ByClientIP((*echo.Context).RealIP, "echolock.ByClientIP")
}

// RefusalHandler answers a refused request. It may change the conflict, and call [httplock.Refuse] for the writing. An error that it
// returns is answered by Echo's HTTPErrorHandler. If nothing is written, the guard calls httplock.Refuse.
type RefusalHandler func(c *echo.Context, conflict *httplock.Conflict) error

// WithRefusalHandler is [httplock.WithRefusalHandler] for handlers of Echo. To have Echo's HTTPErrorHandler answer refused requests
// as all other errors:
//
//	echolock.WithRefusalHandler(func(c *echo.Context, conflict *httplock.Conflict) error {
//		return echo.NewHTTPError(conflict.Status, conflict.Code).Wrap(conflict)
//	})
func WithRefusalHandler(handler RefusalHandler) httplock.Option {
	return httplock.WithRefusalHandler(framework.Refusal(handler))
}
