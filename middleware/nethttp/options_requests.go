package httplock

import (
	"slices"
	"time"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// The options in this file are for all guards of all frameworks.

// WithMethods sets the guarded request methods, in upper case. Requests of other methods pass. Defaults to all but
// GET, HEAD, OPTIONS and TRACE; to POST and PATCH for [Idempotent].
func WithMethods(methods ...string) Option {
	methods = append([]string{}, methods...) // not nil, so that none is an error and not the default
	return httpguard.NewOption("WithMethods", func(c *httpguard.Config) { c.Methods = slices.Clone(methods) })
}

// WithWaiters bounds how many requests wait at this guard at a time in this process: of one key, and of all keys. One
// more is answered at once. One owner gets no more places than are left for others, so half of them at most: see
// [WithBodyMemory]. Defaults to 16 and 1024.
func WithWaiters(perKey, all int) Option {
	return httpguard.NewOption("WithWaiters", func(c *httpguard.Config) { c.WaitersPerKey, c.Waiters = perKey, all })
}

// WithBodyLimit sets how many bytes of body are read before the lock is asked for, also of a larger body and of one whose
// client waits for 100 Continue. A client that sends the rest of a larger body slowly holds the lock as long as the handler
// lets it. 0 reads none, for a handler that answers before it has read all: bound the time of its clients by
// http.Server.ReadTimeout. Defaults to 64 KiB; to 1 MiB for Idempotent, which compares bodies, and refuses larger ones with 413.
func WithBodyLimit(bytes int64) Option {
	return httpguard.NewOption("WithBodyLimit", func(c *httpguard.Config) { c.BodyLimit = bytes })
}

// WithBodyMemory bounds how many bytes of bodies this guard has buffered in this process, in total, while their
// requests arrive and run. Beyond it, a request with a body is refused with 503 too-many-bodies. One owner gets no more than
// what is left for others, so half of it at most. The owner is the user or client address in the key, or the scope of an
// Idempotency-Key. Without them, and while a body makes the key, it is the address of the connection, which is that of the
// proxy if there is one. Slow clients hold what they have sent: bound their time by http.Server.ReadTimeout. It has to be
// more than twice the limit of [WithBodyLimit]. Defaults to 64 MiB.
func WithBodyMemory(bytes int64) Option {
	return httpguard.NewOption("WithBodyMemory", func(c *httpguard.Config) { c.BodyMemory = bytes })
}

// WithAskTimeout sets how long Redis may take to answer a request that does not wait, or waits for less than that.
// With [FailOpen], a request that waits for longer gives Redis all its wait, 5 s at most. 1 ms to 8760 h. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option { return guards.WithAskTimeout(limit) }

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the release or the record, even if the context of
// the request is over. It waits for half of the time at most that the server's WriteTimeout leaves. After that the response is
// sent all the same, and the client of Redis retries in the background. 1 ms to 8760 h. Defaults to 5 s.
func WithFinishTimeout(limit time.Duration) Option { return guards.WithFinishTimeout(limit) }

// FailOpen lets requests run unguarded while Redis cannot be asked. They may run at the same time as others or once
// more, without fencing token and without record; [Degraded] returns true for them. It does not apply if Redis answers
// but refuses, because it is full, or wants other rights or another password. Nor does it apply to a key of which this guard
// knows a run: one in progress in this process, one that had a lease when Redis last answered about the key, until that
// lease ends, or, behind Once and Idempotent, one that has taken effect in this process within ten minutes, or was replayed or
// refused for that here. What ran without Redis does not run again when Redis is back either, and is recorded then. A guard that remembers 10,000
// keys refuses further ones. It knows nothing of other guards. Defaults to refusing requests with 503.
func FailOpen() Option { return guards.FailOpen() }

// OptionalKey lets requests that lack a part of the key pass unguarded. Defaults to refusing them with 400.
func OptionalKey() Option { return guards.OptionalKey() }

// WithKeySecret makes the hashes of keys with a secret (HMAC). Without it, a reader of Redis can guess whose they are,
// because user names and e-mail addresses are few. All instances need the same secret, at least 16 bytes. With another
// secret no record is found. Defaults to none.
func WithKeySecret(secret []byte) Option { return guards.WithKeySecret(secret) }
