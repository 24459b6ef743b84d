// Package httpguard is the place of HTTP under the guards of internal/guard: it has what only requests have, their keys, bodies,
// answers and refusals. [Exclusive] prevents two requests of one key from running at the same
// time. [Once] allows no request of a key to run after one has taken effect: it refuses the later ones, or repeats the
// first answer. With [IdempotentConfig] the key is the client's own Idempotency-Key.
//
// Applications use an adapter, not this package: nethttp for net/http, gin for gin. The adapters' documentation says
// what happens to a request, what counts as completed, and where a guard belongs. The engine knows no framework, so
// another adapter is small:
//
//   - Change the [Config] by options: [Config.Apply], with an [Adapter].
//   - Let requests pass that Guards does not name.
//   - Make a [Key] of the request with [NewKey], [Join], [PrincipalKey] and a [Route]. For Idempotent, [ScopedKey]
//     joins the header to the scope.
//   - Read its body with [Buffer], so that no client holds a key by sending slowly. BufferRequest does that for an
//     http.Request.
//   - Call [AnswerBy] for how long it may wait.
//   - Answer with the [Problem] of a [Conflict]. Refuse makes one of an error that happened before.
//
// For an Exclusive, call [Exclusive.Do] with the handler. For a Once, call [Once.Do] with a [Handler], which has the handler answer
// into a [Capture]. If Do returns a [Response], answer with it: [Replay]. If it returns nothing, send what was captured; it is
// recorded by then, so a client that has read its answer finds it recorded. In any other case, and if Do does not return, call
// [Capture.Abandon].
//
// When a refusal has been answered inside of another guard, call [RefusalSent]. Bodies count against the memory of the
// guard by Admit.
//
// What a run leaves is a [Disposition]: completed, released or held. It follows from the status of the answer or from
// the handler's own call, or from a judge of the application. Records are kept for 24 hours by default:
// [core.WithRetention]. A guard's [Ledger] is for operators: it reads, resolves and forgets records.
//
// # Keys
//
// What a client sends never reaches Redis, logs or answers. A key is the SHA-256 of its parts, and the name of the
// lock is "http:" and that hash, whichever adapter made it. So all adapters exclude each other on the same key, and
// replay each other's answers. A [Route] makes the same key of the same route, however the router writes it. Services
// that should not meet have clients with different prefixes, [core.WithPrefix].
package httpguard
