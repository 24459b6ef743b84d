// Package httplock guards net/http handlers with locks on Redis. [Exclusive] lets no two requests of one key
// run at the same time, on however many instances. It does not keep a request from running a second time after
// the first has finished: "never twice" is called Once, which is not part of this version yet.
//
// The directory is not called like the package, so import it by name:
//
//	import httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//
//	user := httplock.ByContext(userKey{}) // put there by your authentication
//	checkout := httplock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	mux.Handle("POST /cart/{id}/checkout", checkout(handler))
//
// # What happens to a request
//
// A request of a safe method passes. For any other the key is made, the body is read up to 64 KiB, and the
// lock is asked for, 250 ms long if it is held. Then the handler runs. Its context ends if the lease is lost,
// with the cause [core.ErrLeaseLost], and carries the fencing token: see [core.TokenFrom]. The lock is kept
// until the handler returns, also if the client leaves, and is released however the handler ends. The
// handler's http.ResponseWriter is the one that came in, with all it can do.
//
// A refused request gets a problem (RFC 9457) with one of the codes of package middleware, and if it should
// come back, when: 409 lock-conflict while another one runs, 503 lock-unavailable while Redis does not answer
// (unless [FailOpen]), 400 key-required or key-invalid, 401 scope-required. A client that left while it waited
// gets nothing but the status 499, for the log, and its request is never run.
//
// # Where to put it
//
// Outermost first: recovery, logging, timeout, authentication, rate limit, then this guard, then the database
// transaction, then the handler.
//
//   - A timeout belongs around the guard: [http.TimeoutHandler] answers while its handler still runs, so inside
//     the guard it would release the lock under a running handler.
//   - Authentication belongs around the guard: without it, whoever can guess a key can hold it.
//   - A transaction belongs inside: it must be committed before the next request may look.
//   - The guard belongs inside the mux, around handlers: only there the route is known to [ByRoute] and
//     [ByPathValue].
//
// Two things the guard cannot see: a handler that leaves goroutines behind or hijacks the connection works on
// without lock once it has returned; and requests whose contexts descend from one lease, by
// http.Server.BaseContext for instance, are one owner, whom a lock does not keep from itself.
//
// Close the locks after [http.Server.Shutdown] has returned, and the Redis client after that.
package httplock
