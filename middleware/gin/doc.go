// Package ginlock guards gin handlers with locks and records on Redis, on however many instances:
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
//		ginlock "github.com/holdfast-go/holdfast/middleware/gin"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByContext("user") // c.Set by your authentication
//	checkout := ginlock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	order := ginlock.Once(locks, httplock.Keys(httplock.ByRoute(), user), httplock.WithDetachedContext())
//	pay := ginlock.Idempotent(locks, user,
//		core.WithFailurePolicy(core.HoldFailures)) // no second charge after a 500
//	router.POST("/cart/:id/checkout", authenticate, checkout, handler)
//
// A key function gets a copy of the request with gin's route, parameters and values, so a net/http service on the same Redis
// makes the same keys of the same routes and users. [Context] returns the gin.Context to it.
//
// # What goes wrong
//
//   - Work gets c as its context. The context that is cancelled when the lease is lost, with the cause [core.ErrLeaseLost], is
//     c.Request.Context(); c itself never ends unless gin's ContextWithFallback is set. [core.TokenFrom], [core.AttemptFrom],
//     [core.KeyHash], [core.Complete], [core.Release], [core.Hold] and [httplock.Degraded] take either.
//   - The guard is on the whole engine. Paths without a route get 400 there if the key has the route: put guards on routes or
//     groups. [httplock.ByContext] finds only what was set before, so authentication is in front.
//   - Errors in c.Errors without a response are a failure, whatever the status, because a renderer around the guard will
//     respond. If such a renderer adds a body after c.AbortWithError, the response is not replayed, and a retry gets 409
//     already-completed. A 4xx, as c.BindJSON sets it, is replayed as status and header.
//
// Each refusal is in c.Errors as a public error, in which errors.As finds the [httplock.Conflict]. A service that renders
// c.Errors itself takes [ErrorsOnly]. The middlewares around the guard see the status and size of the response as they would
// without it.
//
// Close the locks after [net/http.Server.Shutdown] has returned, and the Redis client after that.
//
// [The guide] has the order of middlewares, all options, and what happens when Redis fails.
//
// [The guide]: https://github.com/holdfast-go/holdfast/blob/main/docs/http.md
package ginlock
