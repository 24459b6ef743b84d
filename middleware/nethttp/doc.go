// Package httplock guards net/http handlers with locks and records on Redis, on however many instances:
//
//   - [Exclusive]: no two requests of one key at the same time. When one has finished, the next one runs. For what
//     must not overlap: a checkout of a cart.
//   - [Once]: no second time. A request is refused while the first one of its key runs, and after it has taken effect.
//     The server makes the key: one order per user and day.
//   - [Idempotent]: the same request, the same response. The client makes the key, an Idempotency-Key header of its own
//     for each operation, and its retry gets the first response again. For payments, and whatever clients retry.
//
// Import it by name:
//
//	import httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//
//	user := httplock.ByContext(userKey{}) // put there by your authentication
//	checkout := httplock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	order := httplock.Once(locks, httplock.Keys(httplock.ByRoute(), user),
//		httplock.WithDetachedContext()) // a client that hangs up does not end the handler
//	pay := httplock.Idempotent(locks, user,
//		core.WithFailurePolicy(core.HoldFailures)) // no second charge after a 500
//	mux.Handle("POST /cart/{id}/checkout", checkout(handler))
//
// The context of the handler is cancelled if the lease is lost, with the cause [core.ErrLeaseLost], and carries the fencing
// token ([core.TokenFrom]), the attempt ([core.AttemptFrom]) and the [core.KeyHash]. The guard holds the key until the handler
// returns, even if the client leaves. Refused requests get a problem (RFC 9457).
//
// # What counts as completed
//
// How the handler ended decides what Once and Idempotent record:
//
//	                                          Once        Idempotent           with HoldFailures
//	2xx, 3xx                                  completed   completed, replayed  as left
//	401 403 407 408 409 421 423 425 429       released    released             as left
//	other 4xx but 499                         released    completed, replayed  as left
//	5xx, panic, crash                         released    released             held: outcome-unknown
//	nothing written, its context over         released    released             held: outcome-unknown
//	core.Complete, core.Release, core.Hold    the handler's call wins
//
// Released lets the next request run, with a larger fencing token. Call [core.Complete] right after the side effect if an
// error may still follow.
//
// # What goes wrong
//
//   - Records are kept for 24 hours. After that a request of the same key runs again, unless [core.WithRetention] or
//     [WithRetentionUntil] says otherwise. Redis may lose a record earlier, so let the database decide: by a UNIQUE
//     constraint on what must exist once, or by the fencing token.
//   - Services with the same routes on one Redis share keys. Give their clients prefixes of their own ([core.WithPrefix]).
//   - Call [core.Complete] right after the commit, or pass [WithDetachedContext]. Otherwise a client that hangs up cancels the
//     context of the handler, and if the handler then fails after its commit, the client's next request runs.
//   - A handler that leaves goroutines behind or hijacks the connection continues unguarded once it has returned. Requests
//     whose contexts descend from one lease, for instance by http.Server.BaseContext, are one owner, and a lock does not
//     exclude an owner from itself.
//
// Put the guard inside the mux and behind timeout and authentication, in front of the database transaction. gin, Echo and
// fiber have guards of their own: packages ginlock, echolock, echo4lock and fiberlock.
//
// [The guide] has the order of middlewares and what happens when Redis fails; two more pages have [the keys] and [the responses].
//
// [The guide]: https://github.com/holdfast-go/holdfast/blob/main/docs/http.md
// [the keys]: https://github.com/holdfast-go/holdfast/blob/main/docs/http-keys.md
// [the responses]: https://github.com/holdfast-go/holdfast/blob/main/docs/http-responses.md
package httplock
