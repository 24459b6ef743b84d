// Package httplock guards net/http handlers with locks and records on Redis, on however many instances:
//
//   - [Exclusive]: no two requests of one key at the same time. When one has finished, the next one runs. For what
//     must not overlap: a checkout of a cart.
//   - [Once]: no second time. A request is refused while the first one of its key runs, and after it has taken effect.
//     The server makes the key: one order per user and day.
//   - [Idempotent]: the same request, the same answer. The client makes the key, an Idempotency-Key header of its own
//     for each operation, and its retry gets the first answer again. For payments, and whatever clients retry.
//
// The directory is not called like the package, so import it by name:
//
//	import httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//
//	user := httplock.ByContext(userKey{}) // put there by your authentication
//	checkout := httplock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
//	order := httplock.Once(locks, httplock.Keys(httplock.ByRoute(), user))
//	pay := httplock.Idempotent(locks, user, core.WithFailurePolicy(core.HoldFailures)) // no second charge after a 500
//	mux.Handle("POST /cart/{id}/checkout", checkout(handler))
//
// # What happens to a request
//
// A request of a safe method passes; Idempotent guards POST and PATCH only. For any other request the guard makes the
// key and reads the body up to 64 KiB (Idempotent: 1 MiB, larger ones are refused). Then it asks Redis: for 250 ms
// with Exclusive, once with the others, unless [core.WithWait] says otherwise. Then the handler runs. Its context ends if
// the lease is lost, with the cause [core.ErrLeaseLost], and carries the fencing token ([core.TokenFrom]), the
// attempt ([core.AttemptFrom]) and the [core.KeyHash]. The guard holds the key until the handler returns, even if the client leaves, and
// records how the run ended in every case. A request whose client leaves while it waits never runs.
//
// Behind Exclusive the handler's http.ResponseWriter is the one that came in, with all it can do. Once and Idempotent
// hold the answer back until it is recorded. An answer that grows above 256 KiB, is flushed or hijacked passes
// through.
//
// # What the key is made of
//
// [ByRoute] is the operation: method and route, whatever its wildcards match. [ByPathValue] is the thing: "/cart/{id}"
// and the value of id. Give Exclusive the thing, so that requests for it do not overlap. Give Once the operation, and
// the thing where each has its own. Give both the user: [ByContext], [ByPrincipal]. Idempotent compares method, path,
// query, type and body without an option. The path is the one that the client has sent. Of a multipart body the parts
// count, not the boundary.
//
// Services with the same routes on one Redis share keys. Give their clients prefixes of their own ([core.WithPrefix]),
// and join [ByHost] to distinguish hosts.
//
// # Frameworks
//
// chi and gorilla/mux take these guards unchanged. In gorilla/mux [ByRoute] and [ByPathValue] need a middleware that tells the
// route: it is in docs/http.md. gin, Echo and fiber have guards of their own: packages ginlock, echolock, echo4lock and fiberlock.
// Do not use these guards there: fiber's adaptor runs the handler after the middleware has returned, and Echo answers the error of
// a handler after that. Then the answer that is recorded is not the one that the client gets.
//
// # What counts as completed
//
// How the handler ended decides what Once and Idempotent record:
//
//	                                          Once        Idempotent           with HoldFailures
//	2xx, 3xx                                  completed   completed, replayed  as left
//	401 403 407 408 409 421 423 425 429       released    released             as left
//	other 4xx but 499                         released    completed, replayed  as left
//	5xx, panic, Goexit, ErrAbortHandler       released    released             held: outcome-unknown
//	nothing written, its context over; 499    released    released             held: outcome-unknown
//	refused by a guard inside                 released    released             released
//	crashed or unreachable                    released    released             held: outcome-unknown
//	nothing written, its context alive        completed   completed, empty 200 as left
//	connection taken over                     completed   completed, no replay as left
//	core.Complete, core.Release, core.Hold    the handler's call wins
//
// Released lets the next request run, with the next number of the attempt and a larger fencing token. Call [core.Complete] right
// after the side effect if an error may still follow: "the card is charged, then the mail failed" must not free the
// key. For payments use [core.HoldFailures], and call [core.Release] for a failure before the charge. Without HoldFailures, a
// 500 after the charge lets the retry charge again. [WithCompletion] sets other rules for a whole guard.
//
// # Records are kept for 24 hours
//
// After 24 HOURS the record is gone, and a request of the same key RUNS AGAIN, unless [core.WithRetention] or
// [WithRetentionUntil] says otherwise. Redis may lose a record earlier: with any maxmemory-policy but noeviction, or
// when a replica takes over that did not have it yet. So let the database decide: by a UNIQUE constraint on what must
// exist once, or by "UPDATE ... WHERE fence < token" with the fencing token of the run. The guard is the fast gate in
// front of it.
//
// # What clients get
//
// A refused request gets a problem (RFC 9457) with a stable member code, whether a retry may succeed (retryable), and
// if so, when (Retry-After):
//
//	400 key-required, key-invalid            the key is missing or malformed
//	400 body-unreadable                      the body ended before its end
//	401 scope-required                       no user is logged in
//	408 body-timeout                         the body did not arrive in time
//	409 lock-conflict          Retry-After   Exclusive: another one is running
//	409 request-in-progress    Retry-After   Once, Idempotent: the first one is running
//	409 already-completed                    it took effect before, and there is no answer to replay; with its Location
//	409 outcome-unknown                      HoldFailures: unknown until an operator has found out, see [Guard]
//	413 payload-too-large                    the body is larger than what can be compared
//	422 key-reused                           the key belongs to another request
//	425 too-early                            TLS early data that was not answered before
//	429 limit-reached          Retry-After   Exclusive: with Limit(n), n are running
//	429 too-many-keys          Retry-After   [core.WithQuota]: the scope has as many records as are allowed
//	499 client-gone                          the client left while it waited; for the log
//	500 key-failed                           the key could not be made
//	500 guard-failed                         the guard cannot be used like this: an invalid option, a lock within itself,
//	                                         a body that was read in front of it
//	503 lock-unavailable       Retry-After   Redis does not answer, unless [FailOpen]
//	503 undecided              Retry-After   the database of [core.WithProof] does not answer, or refuses
//	503 not-answered           Retry-After   the handler stopped without an answer when its context ended
//	503 too-many-bodies        Retry-After   other bodies take the memory of [WithBodyMemory]
//
// Retry-After at a conflict is one or two seconds, at random, so that clients do not come back together. 409
// already-completed has one only with [WithRetentionUntil].
//
// A replay has Idempotency-Replayed: true, the status, the body and the header fields that the handler has set. It has
// no cookies, credentials, tokens, traces and fields of one transmission. An answer is not replayed if its body is
// above 256 KiB ([core.WithMaxValue]) or broke off, or if it has trailers. Then the request gets 409 already-completed.
// Of such a 4xx the status and the header are replayed. For browsers, CORS has to expose Retry-After and
// Idempotency-Replayed, and to allow Idempotency-Key.
//
// # What is logged
//
// A guard logs what clients cannot cause: keys that could not be made, a Redis that does not answer or refuses,
// unguarded runs, lost leases, ends that were not recorded, unknown outcomes. It uses the logger of the client that
// makes the locks. It logs the first of each kind at once, then one line a minute with how many were seen. Keys appear by
// their hash. Of an error of a key function only its type appears, unless it is a [log/slog.LogValuer].
//
// # What hooks are told
//
// The hooks of that client see each request with the place "http" and its route as the label: [core.RunStart] and
// [core.RunEnd] of a run, [core.NotRun] of a replay or a refusal, with the code as the reason and the [Conflict] as the
// error, and [core.Incident] if a run has less than its guard promises.
//
// # Where to put it
//
// Outermost first: recovery, logging, request id, CORS, compression, timeout, authentication, rate limit, then the
// guard, then the database transaction, then the handler.
//
//   - A timeout belongs around the guard: [http.TimeoutHandler] answers while its handler still runs, so inside the
//     guard it would free the key, and record an answer, under a running handler.
//   - Authentication belongs around the guard: without it, any client that guesses a key can hold it.
//   - Compression belongs around the guard: each replay is then compressed as its client can read it.
//   - A transaction belongs inside: it must be committed before the next request may look.
//   - What reads the body belongs inside, or puts the body back into r.Body, where bodies are compared: Idempotent and
//     [WithFingerprint]. Forms that net/http parses in front of the guard are compared by their fields. What else was read
//     gets 500 guard-failed, if the body has a Content-Length. Without one it looks empty.
//   - The guard belongs inside the mux, around handlers: only there the route is known to [ByRoute] and [ByPathValue].
//
// The guard cannot see two things. A handler that leaves goroutines behind or hijacks the connection continues
// unguarded once it has returned. Requests whose contexts descend from one lease, for instance by
// http.Server.BaseContext, are one owner, and a lock does not exclude an owner from itself.
//
// Close the locks after [http.Server.Shutdown] has returned, and the Redis client after that.
package httplock
