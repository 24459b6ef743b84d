// Package echolock guards handlers of Echo 5 with locks and records on Redis, on however many instances:
//
//   - [Exclusive]: no two requests of one key at the same time. When one has finished, the next one runs. For what
//     must not overlap: a checkout of a cart.
//   - [Once]: no second time. A request is refused while the first one of its key runs, and after it has taken effect.
//     The server makes the key: one order per user and day.
//   - [Idempotent]: the same request, the same response. The client makes the key, an Idempotency-Key header of its own
//     for each operation, and its retry gets the first response again. For payments, and whatever clients retry.
//
// It takes the options and key functions of package httplock, which also says what counts as completed and what goes wrong:
//
//	import (
//		echolock "github.com/holdfast-go/holdfast/middleware/echo"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByContext("user") // c.Set by your authentication
//	checkout := echolock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	order := echolock.Once(locks, httplock.Keys(httplock.ByRoute(), user), httplock.WithDetachedContext())
//	pay := echolock.Idempotent(locks, user,
//		core.WithFailurePolicy(core.HoldFailures)) // no second charge after a 500
//	e.POST("/cart/:id/checkout", handler, authenticate, checkout)
//
// A key function gets a copy of the request with Echo's route, parameters and values, so a net/http service on the same Redis
// makes the same keys of the same routes and users. [Context] returns the echo.Context to it. The context of the request,
// c.Request().Context(), is cancelled when the lease is lost, with the cause [core.ErrLeaseLost].
//
// # What goes wrong
//
// An error that the handler returns is answered by Echo's HTTPErrorHandler while the guard holds the key, and that response is
// recorded. Then the guard returns the error, so that a middleware rolls a transaction back, and Echo passes it to the
// HTTPErrorHandler once more. Echo's own writes nothing then, because the response is committed. Yours must check that too:
//
//	e.HTTPErrorHandler = func(c *echo.Context, err error) {
//		if r, _ := echo.UnwrapResponse(c.Response()); r != nil && r.Committed {
//			return
//		}
//		// ...
//	}
//
// If the HTTPErrorHandler writes nothing, the run has failed without a response: the guard answers 503 not-answered, or what a
// retry gets. To have the HTTPErrorHandler answer refused requests too, use [WithRefusalHandler].
//
// A guard by Use whose key has the route answers 400 to unknown paths, and a guard by Pre runs before there is a route: put
// guards at routes. A timeout should be Echo's ContextTimeout, around the guard.
//
// Close the locks after [net/http.Server.Shutdown] has returned, and the Redis client after that.
//
// [The guide] has the order of middlewares, all options, and what happens when Redis fails.
//
// [The guide]: https://github.com/holdfast-go/holdfast/blob/main/docs/http.md#echo
package echolock
