// Package echolock guards handlers of Echo 5 with locks and records on Redis, on however many instances:
//
//   - [Exclusive]: no two requests of one key at the same time. When one has finished, the next one runs. For what
//     must not overlap: a checkout of a cart.
//   - [Once]: no second time. A request is refused while the first one of its key runs, and after it has taken effect.
//     The server makes the key: one order per user and day.
//   - [Idempotent]: the same request, the same response. The client makes the key, an Idempotency-Key header of its own
//     for each operation, and its retry gets the first response again. For payments, and whatever clients retry.
//
// Options, key functions, and what a handler calls are those of package httplock:
//
//	import (
//		echolock "github.com/holdfast-go/holdfast/middleware/echo"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByContext("user") // c.Set by your authentication
//	checkout := echolock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	order := echolock.Once(locks, httplock.Keys(httplock.ByRoute(), user))
//	pay := echolock.Idempotent(locks, user, core.WithFailurePolicy(core.HoldFailures)) // no second charge after a 500
//	e.POST("/cart/:id/checkout", handler, authenticate, checkout)
//
// Package httplock says what happens to a request, what counts as completed, how long records are kept, what clients
// get, and what is logged. This page has what differs in Echo.
//
// # Keys
//
// The guard hands a key function a copy of the request. Its Pattern is the route in the form of http.ServeMux, "POST
// /cart/{id}" for "/cart/:id", and its path values are Echo's parameters; that of "*" is named "rest". Its context also has the
// values that c.Set has put into the echo.Context. So a net/http service on the same Redis makes the same keys of the same routes
// and users. What only Echo has, a key function gets by [Context]; [ByClientIP] is one.
//
// A route that ends in "*" does not say where a request goes, for instance to another router. The path of the
// request counts in its place, so a handler that treats all of these paths alike lets clients choose the key: use
// [httplock.Constant]. A guard of all routes, by Use, whose key has the route answers 400 to unknown paths. A guard by Pre runs
// before there is a route.
//
// # Errors
//
// An error that the handler returns is answered by Echo's HTTPErrorHandler as without the guard, but while the guard still
// holds the key, and the response that it writes is recorded. After that the guard returns the error to the middlewares
// around it, so that a transaction is rolled back and a logger logs it, and Echo hands it to the HTTPErrorHandler once more. Echo's
// own writes nothing then, because the response is committed. Yours must check that too, as with Echo's RequestLogger:
//
//	e.HTTPErrorHandler = func(c *echo.Context, err error) {
//		if r, _ := echo.UnwrapResponse(c.Response()); r != nil && r.Committed {
//			return
//		}
//		// ...
//	}
//
// If the HTTPErrorHandler writes nothing, the run has failed without a response: the guard answers 503 not-answered, or what a retry
// gets. Refused requests are answered with a problem. To have the HTTPErrorHandler answer them too, use [WithRefusalHandler].
//
// # Contexts
//
// The context of the request, c.Request().Context(), ends if the lease is lost, with the cause [core.ErrLeaseLost]. It is what
// [core.TokenFrom], [core.AttemptFrom], [core.KeyHash], [core.Complete], [core.Release], [core.Hold] and
// [httplock.Degraded] take.
//
// # The writer
//
// Behind the guard c.Response() is an echo.Response of the guard, with the status that the one around it has. Once and Idempotent
// hold the response back until it is recorded. A response that grows above 256 KiB, is flushed or hijacked passes through. The
// middlewares around the guard get c.Request() and c.Response() back as they were, and see the status and size of the response as
// they would without guard.
//
// # Where to put it
//
// Outermost first: logging, recovery, request id, CORS, compression, timeout, authentication, rate limit, then the
// guard, then the database transaction, then the handler. A timeout should be one of the context, Echo's ContextTimeout, around
// the guard. Authentication belongs around the guard: without it, any client that guesses a key can hold it.
//
// Close the locks after [net/http.Server.Shutdown] has returned, and the Redis client after that.
package echolock
