// Package ginlock guards gin handlers with locks and records on Redis, on however many instances:
//
//   - [Exclusive]: no two requests of one key at the same time. When one has finished, the next one runs. For what
//     must not overlap: a checkout of a cart.
//   - [Once]: no second time. A request is refused while the first one of its key runs, and after it has taken effect.
//     The server makes the key: one order per user and day.
//   - [Idempotent]: the same request, the same response. The client makes the key, an Idempotency-Key header of its own
//     for each operation, and its retry gets the first response again. For payments, and whatever clients retry.
//
// Options, key functions, and what a handler calls are those of package httplock and of core:
//
//	import (
//		ginlock "github.com/holdfast-go/holdfast/middleware/gin"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByContext("user") // c.Set by your authentication
//	checkout := ginlock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	order := ginlock.Once(locks, httplock.Keys(httplock.ByRoute(), user))
//	pay := ginlock.Idempotent(locks, user, core.WithFailurePolicy(core.HoldFailures)) // no second charge after a 500
//	router.POST("/cart/:id/checkout", authenticate, checkout, handler)
//
// Package httplock says what happens to a request, what counts as completed, how long records are kept, what clients
// get, and what is logged. This page has what differs in gin.
//
// # Keys
//
// The guard hands a key function a copy of the request. Its Pattern is c.FullPath in the form of http.ServeMux, "POST
// /cart/{id}" for "/cart/:id", and its path values are gin's parameters. Its context also has the values of the gin.Context with a
// string for a key. So a net/http service on the same Redis makes the same keys of the same routes and users. What only gin
// has, a key function gets by [Context]; [ByClientIP] is one.
//
// A route that ends in "/*rest" does not say where a request goes, for instance to another router. The path of the
// request counts in its place, so a handler that treats all of these paths alike lets clients choose the key: use
// [httplock.Constant]. A route for any method has a key for each method. A guard of the whole engine whose key has the
// route answers 400 to unknown paths.
//
// # Contexts
//
// The context of the request, c.Request.Context(), ends if the lease is lost, with the cause [core.ErrLeaseLost]. Hand that
// context on, not c itself, which never ends unless gin's ContextWithFallback is set. [core.TokenFrom], [core.AttemptFrom],
// [core.KeyHash], [core.Complete], [core.Release], [core.Hold] and [httplock.Degraded] take either.
//
// # The writer
//
// Behind a guard c.Writer is gin's own if that came in, and otherwise one of gin's own in front of the one that came in, with the same
// optional methods. Once and Idempotent hold the response back until it is recorded, whatever HandleContext adds to it. A response that
// grows above 256 KiB, is flushed or hijacked passes through. The middlewares around the guard get c.Request and c.Writer
// back as they were, and see the status and size of the response as they would without guard.
//
// # Errors in c.Errors
//
// Errors in c.Errors without a response are a failure, whatever the status: a renderer around the guard will respond. If such a
// renderer adds a body after c.AbortWithError, the response is not replayed, and the request gets 409 already-completed. Of a
// 4xx, as c.BindJSON sets it, status and header are replayed, because it did not take effect.
//
// Each refusal is in c.Errors as a public error: errors.As finds its [httplock.Conflict], whose text, other than that of the
// error itself, says the cause. A service that renders c.Errors itself takes [ErrorsOnly].
//
// With a writer of another middleware around the guard, what HandleContext writes for another route goes around the guard, and the
// response is recorded without its body.
//
// # Where to put it
//
// Outermost first: recovery, logging, request id, CORS, compression, the renderer of c.Errors, timeout,
// authentication, rate limit, then the guard, then the database transaction, then the handler.
//
//   - A timeout belongs around the guard, and should be one of the context. A middleware inside the guard that responds
//     while its handler still runs would free the key, and record a response, under the running handler.
//   - Authentication belongs around the guard: without it, any client that guesses a key can hold it.
//     [httplock.ByContext] finds only what was set before.
//   - What replaces the body, to decompress it for instance, may be on either side. Inside, the guard compares the body as
//     it was sent.
//   - What reads the body belongs inside, or puts the body back into c.Request.Body, where bodies are compared: Idempotent
//     and [httplock.WithFingerprint]. What c.PostForm parses in front of the guard is compared by its fields, and what
//     c.ShouldBindBodyWith reads by its bytes. What else was read gets 500 guard-failed, if the body has a Content-Length.
//     Without one it looks empty.
//   - Recovery may be on either side. A panic goes through the guard.
//
// Close the locks after [net/http.Server.Shutdown] has returned, and the Redis client after that.
package ginlock
