// Package fiberlock guards handlers of fiber 3 with locks and records on Redis, on however many instances:
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
//		fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByContext("user") // c.Locals of your authentication
//	checkout := fiberlock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	order := fiberlock.Once(locks, httplock.Keys(httplock.ByRoute(), user))
//	pay := fiberlock.Idempotent(locks, user,
//		core.WithFailurePolicy(core.HoldFailures)) // no second charge after a 500
//	app.Post("/cart/:id/checkout", authenticate, checkout, handler)
//
// A key function gets a request of net/http with fiber's route, parameters and c.Locals, so a net/http service on the same Redis
// makes the same keys of the same routes and users. [Context] returns the fiber.Ctx to it.
//
// # What goes wrong
//
//   - Work gets c as its context. The context that is cancelled when the lease is lost, with the cause [core.ErrLeaseLost], is
//     c.Context(); c itself never ends. [core.TokenFrom], [core.AttemptFrom], [core.KeyHash], [core.Complete], [core.Release],
//     [core.Hold] and [httplock.Degraded] take either. fiber does not notice that a client leaves. A timeout around the guard
//     that sets a context with a deadline by c.SetContext ends both the wait for a lock and the run.
//   - The guard is at app.Use. fiber has not matched a route there, so keys with the route or a parameter fail with 500. Put
//     the guard at the route, and authentication around it.
//   - A stream outlives its handler. A response of SendStreamWriter, SendStream or SendFile holds the key until it has ended,
//     and is recorded without its body: a retry gets 409 already-completed. Take c.Context() before the handler returns,
//     because fiber uses c again.
//   - fiber's adaptor for net/http with a guard of httplock runs the handler after the guard has ended. Use this package.
//
// An error that the handler returns is answered by the app's ErrorHandler while the guard holds the key, and that response is
// recorded. The guard then returns nil, because a second call of the ErrorHandler could change the response. A middleware that
// must see the error, for instance to roll back a transaction, belongs inside the guard.
//
// Close the locks after [fiber.App.Shutdown] has returned, and the Redis client after that.
//
// [The guide] has the order of middlewares, all options, and what happens when Redis fails.
//
// [The guide]: https://github.com/holdfast-go/holdfast/blob/main/docs/http.md#fiber
package fiberlock
