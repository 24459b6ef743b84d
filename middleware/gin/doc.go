// Package ginlock guards gin handlers with locks on Redis. [Exclusive] lets no two requests of one key run at
// the same time, on however many instances. It does not keep a request from running a second time after the
// first has finished: "never twice" is called Once, which is not part of this version yet.
//
// The directory is not called like the package, so import it by name:
//
//	import ginlock "github.com/holdfast-go/holdfast/middleware/gin"
//
//	user := ginlock.ByKey("user") // c.Set by your authentication
//	checkout := ginlock.Exclusive(locks.Mutex, ginlock.Keys(user, ginlock.ByParam("id")))
//	router.POST("/cart/:id/checkout", authenticate, checkout, handler)
//
// # What happens to a request
//
// A request of a safe method passes. For any other the key is made, the body is read up to 64 KiB, and the
// lock is asked for, 250 ms long if it is held. Then the rest of the chain runs. The context of its request,
// c.Request.Context(), ends if the lease is lost, with the cause [core.ErrLeaseLost], and carries the fencing
// token: see [TokenFrom]. Hand that context on, not c itself, which never ends unless gin's ContextWithFallback
// is set. The lock is kept until the chain has run, also if the client leaves, and is released however it
// ends. The handler's c.Writer is the one that came in, with all it can do. The middlewares around the guard
// get c.Request and c.Writer back as they were.
//
// A refused request is aborted. It gets a problem (RFC 9457) with one of the codes of package middleware, and
// if it should come back, when: 409 lock-conflict while another one runs, 503 lock-unavailable while Redis does
// not answer (unless [FailOpen]), 400 key-required or key-invalid, 401 scope-required. A client that left while
// it waited gets nothing but the status 499, for the log, and its request is never run. Each refusal is in
// c.Errors as a public error: errors.As finds its [Conflict], whose text, other than that of the error itself,
// says the cause. A service that renders c.Errors itself takes [ErrorsOnly].
//
// # Where to put it
//
// Outermost first: recovery, logging, the renderer of c.Errors, timeout, authentication, rate limit, what
// decompresses the body, then this guard, then the database transaction, then the handler.
//
//   - A timeout belongs around the guard, and should be one of the context: a middleware that answers while
//     its handler still runs would release the lock under it if it were inside.
//   - Authentication belongs around the guard: without it, whoever can guess a key can hold it. [ByKey] finds
//     only what was set before.
//   - A transaction belongs inside: it must be committed before the next request may look.
//   - What replaces the body belongs around the guard: the guard leaves the one it has read for
//     c.ShouldBindBodyWith.
//   - Recovery may be on either side. A panic goes through the guard.
//
// Two things the guard cannot see: a handler that leaves goroutines behind or hijacks the connection works on
// without lock once it has returned; and requests whose contexts descend from one lease, by
// http.Server.BaseContext for instance, are one owner, whom a lock does not keep from itself.
//
// Close the locks after [net/http.Server.Shutdown] has returned, and the Redis client after that.
package ginlock
