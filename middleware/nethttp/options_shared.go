package httplock

import (
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// The options in this file are for all guards of all frameworks.

// Option configures a guard, of this package or of another framework. Making the guard reports an invalid value, and an option
// that only another framework has.
type Option = httpguard.Option

// WithMethods sets the guarded request methods, in upper case. Requests of other methods pass. Defaults to all but
// GET, HEAD, OPTIONS and TRACE; to POST and PATCH for [Idempotent].
func WithMethods(methods ...string) Option { return httpguard.WithMethods(methods...) }

// WithWait sets how long a request waits for the one before it. It waits at most until its context ends, and until one
// second before http.Server.WriteTimeout. 0 asks once. A request that waits at Idempotent gets the answer of the one
// before it. At Exclusive the next request of a sequential client may be faster than the release of its last one, so 0
// can refuse such a request. Defaults to 250 ms for Exclusive, 0 for others.
func WithWait(limit time.Duration) Option { return httpguard.WithWait(limit) }

// WithAskTimeout sets how long Redis may take to answer a request that does not wait, or waits for less than that.
// With [FailOpen], a request that waits for longer gives Redis all its wait, 5 s at most. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option { return httpguard.WithAskTimeout(limit) }

// WithFinishTimeout sets how long the end of a run waits for Redis before the answer is sent all the same. Defaults to
// 2 s.
func WithFinishTimeout(limit time.Duration) Option { return httpguard.WithFinishTimeout(limit) }

// WithWaiters bounds how many requests wait at this guard at a time in this process: of one key, and of all keys. One
// more is answered at once. One owner gets no more places than are left for others, so half of them at most: see
// [WithBodyMemory]. Defaults to 16 and 1024.
func WithWaiters(perKey, all int) Option { return httpguard.WithWaiters(perKey, all) }

// WithBodyLimit sets how many bytes of body are read before the lock is asked for, also of a larger body and of one whose
// client waits for 100 Continue. A client that sends the rest of a larger body slowly holds the lock as long as the handler
// lets it. 0 reads none, for a handler that answers before it has read all: bound the time of its clients by
// http.Server.ReadTimeout. Defaults to 64 KiB; to 1 MiB for Idempotent, which compares bodies, and refuses larger ones with 413.
func WithBodyLimit(bytes int64) Option { return httpguard.WithBodyLimit(bytes) }

// WithBodyMemory bounds how many bytes of bodies this guard has buffered in this process, in total, while their
// requests arrive and run. Beyond it, a request with a body is refused with 503 too-many-bodies. One owner gets no more than
// what is left for others, so half of it at most. The owner is the user or client address in the key, or the scope of an
// Idempotency-Key. Without them, and while a body makes the key, it is the address of the connection, which is that of the
// proxy if there is one. Slow clients hold what they have sent: bound their time by http.Server.ReadTimeout. It has to be
// more than twice the limit of [WithBodyLimit]. Defaults to 64 MiB.
func WithBodyMemory(bytes int64) Option { return httpguard.WithBodyMemory(bytes) }

// WithLock adds options of the lock, for instance [core.WithMaxHold]; use [WithWait] in place of [core.WithWait].
// Defaults to none: those of the strategy and its client apply.
func WithLock(opts ...core.LockOption) Option { return httpguard.WithLock(opts...) }

// FailOpen lets requests run unguarded while Redis cannot be asked. They may run at the same time as others or once
// more, without fencing token and without record; [Degraded] returns true for them. It does not apply if Redis answers
// but refuses, because it is full, or wants other rights or another password. Nor does it apply to a key of which this guard
// knows a run: one in progress in this process, one that had a lease when Redis last answered about the key, until that
// lease ends, or, behind Once and Idempotent, one that has taken effect in this process within ten minutes, or was replayed or
// refused for that here. What ran without Redis does not run again when Redis is back either, and is recorded then. A guard that remembers 10,000
// keys refuses further ones. It knows nothing of other guards. Defaults to refusing requests with 503.
func FailOpen() Option { return httpguard.FailOpen() }

// OptionalKey lets requests that lack a part of the key pass unguarded. Defaults to refusing them with 400.
func OptionalKey() Option { return httpguard.OptionalKey() }

// WithKeySecret makes the hashes of keys with a secret (HMAC). Without it, a reader of Redis can guess whose they are,
// because user names and e-mail addresses are few. All instances need the same secret, at least 16 bytes. With another
// secret no record is found. Defaults to none.
func WithKeySecret(secret []byte) Option { return httpguard.WithKeySecret(secret) }

// WithLogger sets the logger for failures that clients do not cause: keys that could not be made, a Redis that did not
// answer or refused, requests that ran unguarded, lost leases, ends that were not recorded, unknown outcomes. The
// first of each kind is logged at once, then one line a minute with how many were seen. Keys appear by their hash. Of
// an error of a key function only its type appears, unless it is a [slog.LogValuer]. Nil switches logging off.
// Defaults to the logger of the client that makes the locks, see [core.LoggerOf].
func WithLogger(logger *slog.Logger) Option { return httpguard.WithLogger(logger) }

// WithHooks sets functions that are called with what happens to requests. Defaults to none.
func WithHooks(hooks Hooks) Option { return httpguard.WithHooks(hooks) }
