// Package middleware is the engine of the HTTP adapters: it decides whether a request may run now, and what
// a refused one is told. Its [Exclusive] lets no two requests of one key run at the same time, on however many
// instances. It does not keep a request from running a second time after the first has finished: "never twice"
// is called Once, which is not part of this version yet.
//
// Applications use an adapter, not this package: nethttp for net/http, gin for gin. The engine knows requests and
// responses of no framework, so an adapter for another one is small:
//
//   - let through what [Exclusive.Guards] does not name,
//   - make a [Key] of the request with [NewKey] and [Join],
//   - read its body with [Buffer], so that no client holds a lock by sending slowly,
//   - find out by [AnswerBy] how long it may wait,
//   - call [Exclusive.Do] with the handler, and
//   - answer with the [Problem] of the [Conflict] that comes back instead of a run. [Exclusive.Refuse] makes
//     one of an error that happened before Do.
//
// # Keys
//
// What a client sends never reaches Redis, logs or answers: a key is the SHA-256 of its parts, and the lock is
// called "http:" and that hash, whichever adapter made it. So all adapters exclude each other on the same key.
package middleware
