package httplock

import (
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// The options in this file are for all guards of all frameworks; package middleware implements them.

// Option configures a guard, of this package or of another framework. Making the guard reports an invalid value, and an option
// that only another framework has.
type Option = middleware.Option

// WithMethods sets the guarded request methods, in upper case. Requests of other methods pass. Defaults to all but
// GET, HEAD, OPTIONS and TRACE; to POST and PATCH for [Idempotent].
func WithMethods(methods ...string) Option { return middleware.WithMethods(methods...) }

// WithWait sets how long a request waits for the one before it, see [middleware.WithWait]; 0 asks once.
// Defaults to 250 ms for [Exclusive], 0 for others.
func WithWait(limit time.Duration) Option { return middleware.WithWait(limit) }

// WithAskTimeout sets how long Redis may take to answer a request that does not wait, or waits for less than that.
// With [FailOpen], a request that waits for longer gives Redis all its wait, 5 s at most. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option { return middleware.WithAskTimeout(limit) }

// WithFinishTimeout sets how long the end of a run waits for Redis before the answer is sent all the same. Defaults to
// 2 s.
func WithFinishTimeout(limit time.Duration) Option { return middleware.WithFinishTimeout(limit) }

// WithWaiters bounds how many requests of one key, and of all keys, wait at this guard in this process, see
// [middleware.WithWaiters]. Defaults to 16 and 1024.
func WithWaiters(perKey, all int) Option { return middleware.WithWaiters(perKey, all) }

// WithBodyLimit sets how many bytes of body are read before the lock is asked for, see [middleware.WithBodyLimit]. 0
// reads none, but a key of the body still reads it: see ByJSON of package httplock. Defaults to 64 KiB, and to 1 MiB for [Idempotent],
// which refuses larger ones with 413.
func WithBodyLimit(bytes int64) Option { return middleware.WithBodyLimit(bytes) }

// WithBodyMemory bounds the bytes of all buffered bodies, of which one user has half at most: see
// [middleware.WithBodyMemory]. Defaults to 64 MiB.
func WithBodyMemory(bytes int64) Option { return middleware.WithBodyMemory(bytes) }

// WithLock adds options of the lock, for instance [core.WithMaxHold]; use [WithWait] in place of [core.WithWait].
// Defaults to none: those of the strategy and its client apply.
func WithLock(opts ...core.LockOption) Option { return middleware.WithLock(opts...) }

// FailOpen lets requests run unguarded while Redis cannot be asked: at the same time as others, or once more.
// [Degraded] returns true for them, see [middleware.FailOpen]. Defaults to refusing requests with 503.
func FailOpen() Option { return middleware.FailOpen() }

// OptionalKey lets requests that lack a part of the key pass unguarded. Defaults to refusing them with 400.
func OptionalKey() Option { return middleware.OptionalKey() }

// WithKeySecret makes the hashes of keys with a secret, see [middleware.WithKeySecret]. Defaults to none.
func WithKeySecret(secret []byte) Option { return middleware.WithKeySecret(secret) }

// WithLogger sets the logger for failures that clients do not cause, see [middleware.WithLogger]. Nil switches logging
// off. Defaults to the logger of the client that makes the locks.
func WithLogger(logger *slog.Logger) Option { return middleware.WithLogger(logger) }

// WithHooks sets functions that are called with what happens to requests. Defaults to none.
func WithHooks(hooks Hooks) Option { return middleware.WithHooks(hooks) }
