// Package middleware is the engine of the HTTP adapters: it decides whether a request may run now, and what
// another one is answered, on however many instances. [Exclusive] lets no two requests of one key run at the same
// time. [Once] lets none run after one has taken effect: it refuses them, or answers as the first one was answered;
// with [IdempotentConfig] it does so by the client's own Idempotency-Key.
//
// Applications use an adapter, not this package: nethttp for net/http, gin for gin. They tell what happens to a
// request, what counts as completed, and where a guard belongs. The engine knows requests and responses of no
// framework, so an adapter for another one is small:
//
//   - let through what Guards does not name,
//   - make a [Key] of the request with [NewKey], [Join], [PrincipalKey] and a [Route]; for Idempotent, [Once.Key] joins
//     the header to the scope,
//   - read its body with [Buffer], so that no client holds a key by sending slowly; BufferRequest does that for those
//     that have an http.Request,
//   - find out by [AnswerBy] how long it may wait,
//   - answer with the [Problem] of a [Conflict]. Refuse makes one of an error that happened before.
//
// For an Exclusive, call [Exclusive.Do] with the handler. For a Once, let through what [Once.Entered] says, and call
// [Once.Begin]. Of what that returns
//
//   - a [Response] is answered as it was recorded: [Response.Replay],
//   - a [Run] owes a [Run.Finish]: run the handler with its context, its answer held back by a [Capture]; Finish with
//     how it ended, however it ended; and only then send the answer. A client that has read its answer then finds it
//     recorded. Where the handler's errors are answered after the guard has returned, [Run.FinishLate] waits for that.
//
// When a refusal has been answered inside of another guard, call [RefusalSent]. Bodies count against the memory of the
// guard by Admit.
//
// What a run leaves is a [Disposition]: completed, released or held, by the status of its answer or by the handler's
// own word, see [WithCompletion] and [Complete]. Records are kept for 24 hours by default: [WithRetention]. A guard's
// [Ledger] is for operators: it reads, resolves and forgets records.
//
// # Keys
//
// What a client sends never reaches Redis, logs or answers: a key is the SHA-256 of its parts, and the lock is
// called "http:" and that hash, whichever adapter made it. So all adapters exclude each other on the same key, and
// replay each other's answers. A [Route] makes the same key of the same route, however the router writes it. Services that
// should not meet have clients with another [core.WithPrefix].
package middleware
