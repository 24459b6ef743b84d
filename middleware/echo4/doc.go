// Package echo4lock guards handlers of Echo 4 with locks and records on Redis, on however many instances:
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
//		echo4lock "github.com/holdfast-go/holdfast/middleware/echo4"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByContext("user") // c.Set by your authentication
//	checkout := echo4lock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	order := echo4lock.Once(locks, httplock.Keys(httplock.ByRoute(), user), httplock.WithDetachedContext())
//	pay := echo4lock.Idempotent(locks, user,
//		core.WithFailurePolicy(core.HoldFailures)) // no second charge after a 500
//	e.POST("/cart/:id/checkout", handler, authenticate, checkout)
//
// Package echolock, which is for Echo 5, says what differs in Echo, and all of that is true of Echo 4 too, except that an
// HTTPErrorHandler of your own asks the response itself whether it is committed:
//
//	e.HTTPErrorHandler = func(err error, c echo.Context) {
//		if c.Response().Committed {
//			return
//		}
//		// ...
//	}
//
// Echo's Timeout, which is deprecated, drops the response of a handler that returns an error, so the guard returns nil to it.
//
// [The guide] has the order of middlewares, all options, and what happens when Redis fails.
//
// [The guide]: https://github.com/holdfast-go/holdfast/blob/main/docs/http.md#echo
package echo4lock
