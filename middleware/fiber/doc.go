// Package fiberlock guards handlers of fiber 3 with locks and records on Redis, on however many instances:
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
//		fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByContext("user") // c.Locals of your authentication
//	checkout := fiberlock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	order := fiberlock.Once(locks, httplock.Keys(httplock.ByRoute(), user))
//	pay := fiberlock.Idempotent(locks, user, core.WithFailurePolicy(core.HoldFailures)) // no second charge after a 500
//	app.Post("/cart/:id/checkout", authenticate, checkout, handler)
//
// Package httplock says what happens to a request, what counts as completed, how long records are kept, what clients
// get, and what is logged. This page has what differs in fiber. fiber's adaptor for net/http is not an alternative: a guard of
// httplock behind it runs the handler after the guard has ended.
//
// # Keys
//
// The guard hands a key function a request of net/http. Its Pattern is the route in the form of http.ServeMux, "POST
// /cart/{id}" for "/cart/:id", and its path values are fiber's parameters; those of "*" and "+" are named "rest" too. Its context also
// has the values of c.Locals. So a net/http service on the same Redis makes the same keys of the same routes and users. Everything
// in the request is a copy but its body, so a key function may keep texts of it. What only fiber has, a key function gets
// by [Context]; [ByClientIP] is one. Texts of that are fiber's, and are valid during the request only.
//
// Put the guard at the route. Where Use puts it, fiber has not matched the route yet, so keys with the route or a parameter
// fail with 500. A route that ends in "*" does not say where a request goes. The path of the request counts in its place: use
// [httplock.Constant] for a handler that treats all of these paths alike.
//
// With fiber's StreamRequestBody the guard reads bodies of up to 1 MiB ahead. Larger ones, and those of unknown length,
// run unread behind Exclusive and Once, and Idempotent refuses them with 413.
//
// # Contexts
//
// c.Context() ends if the lease is lost, with the cause [core.ErrLeaseLost]. Hand that context on, not c itself, which never ends.
// [core.TokenFrom], [core.AttemptFrom], [core.KeyHash], [core.Complete], [core.Release], [core.Hold] and
// [httplock.Degraded] take either. fiber does not notice that a client leaves, so neither the wait for a lock nor the run ends then. A
// timeout around the guard that sets a context with a deadline by c.SetContext ends both.
//
// # Errors
//
// An error that the handler returns is answered by the app's ErrorHandler as without the guard, but while the guard still holds
// the key, and the response is recorded. fiber's handlers answer by changing a response that is sent in the end. A second call of the
// ErrorHandler could change it again, so the guard returns nil then, as fiber's logger does. A middleware that must see the
// error, for instance to roll back a transaction, belongs inside the guard.
//
// # Streams and connections
//
// A response of SendStreamWriter, SendStream or SendFile is written after the handlers have returned. The guard holds its key until
// the stream has ended, or the client has left, and records status and header, but not the body: a retry gets 409
// already-completed. A stream needs the context of the run: take c.Context() before the handler returns, because c is used again.
// The same holds for a connection that was taken over, by a WebSocket for instance: the key is held until its handler returns.
//
// A handler that returns nil without a status or a body has not answered. fiber sends an empty 200 for it, which is recorded, unless its
// context has ended: then the guard answers 503 not-answered.
//
// # Where to put it
//
// Outermost first: recovery, logging, request id, CORS, compression, timeout, authentication, rate limit, then the guard, then the
// database transaction, then the handler. Authentication belongs around the guard: without it, any client that guesses a key can
// hold it. What a middleware inside the guard changes in the response after the handler, such as etag, is recorded.
//
// Close the locks after [fiber.App.Shutdown] has returned, and the Redis client after that.
package fiberlock
