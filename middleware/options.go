package middleware

import (
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Option changes the [Config] of a guard. Adapters have options of the same names, made of these. An invalid
// value is reported when the guard is built.
type Option func(*Config)

// WithMethods sets the request methods that are guarded; requests of others pass. Methods are in upper case.
// Defaults to all but GET, HEAD, OPTIONS and TRACE.
func WithMethods(methods ...string) Option {
	methods = append([]string{}, methods...) // not nil, so that none is an error and not the default
	return func(c *Config) { c.Methods = slices.Clone(methods) }
}

// WithWait sets how long a request waits for the one before it. It waits no longer than until its context
// ends, and no longer than until one second before http.Server.WriteTimeout. 0 asks once. Whoever waits at Idempotent
// gets the answer of the one before it. At Exclusive a sequential client may be faster with its next request than the
// release of its last one, so 0 refuses requests that collided with nothing. Defaults to 250 ms for Exclusive, 0 for
// others.
func WithWait(limit time.Duration) Option {
	return func(c *Config) { c.Wait = limit }
}

// WithBodyLimit sets up to how many bytes of body are read before the lock is asked for. A client that sends
// a larger body slowly holds the lock as long as the handler lets it. 0 reads none, as a handler needs that
// answers before it has read all. Defaults to 64 KiB; to 1 MiB for Idempotent, which compares bodies, and refuses larger
// ones with 413.
func WithBodyLimit(bytes int64) Option {
	return func(c *Config) { c.BodyLimit = bytes }
}

// WithBodyMemory bounds how many bytes all bodies take together that this guard has buffered in this process, for as long as
// their requests run. Beyond it, a request whose body has to be compared, or makes its key, is refused with 503
// too-many-bodies; others run with a body that is not read ahead. Clients that send slowly hold what they have sent: bound
// their time by http.Server.ReadTimeout. Defaults to 64 MiB.
func WithBodyMemory(bytes int64) Option {
	return func(c *Config) { c.BodyMemory = bytes }
}

// WithLock adds options of the lock, or of the lease of a run: [core.WithTTL], [core.WithMaxHold] for instance.
// [core.WithWait] is of no use here: see [WithWait]. Defaults to none: those of the strategy and its client hold.
func WithLock(opts ...core.LockOption) Option {
	opts = slices.Clone(opts)
	return func(c *Config) { c.Lock = append(c.Lock, opts...) }
}

// FailOpen lets requests run unguarded while Redis cannot be asked: at the same time as others or once more, without
// fencing token and without record, and known by [Degraded]. A Redis that answers, but refuses, opens nothing: one that
// is full, or wants other rights or another password. Defaults to refusing requests with 503.
func FailOpen() Option {
	return func(c *Config) { c.FailOpen = true }
}

// WithConflictStatus sets the status of a request whose lock is held: 423, 429 or 503 for clients that know
// those better. Its code stays lock-conflict. Defaults to 409.
func WithConflictStatus(status int) Option {
	return func(c *Config) { c.ConflictStatus = status }
}

// WithProblemBase sets the URI in front of the code in the type of a problem, for example
// "https://api.example.com/problems/". Defaults to none: the type is about:blank.
func WithProblemBase(uri string) Option {
	return func(c *Config) { c.ProblemBase = uri }
}

// WithHooks sets functions that are told what happens to requests. Defaults to none.
func WithHooks(hooks Hooks) Option {
	return func(c *Config) { c.Hooks = hooks }
}

// WithLogger sets where failures are logged that clients do not cause: keys that could not be made, a Redis that did not
// answer or refused, requests that ran unguarded, lost leases, ends that were not recorded, outcomes that are unknown. The
// first of each kind is logged at once, then one line a minute tells how many were seen. Keys appear by their hash, and of
// an error of a key function only its type, unless it is a [slog.LogValuer]. Nil switches logging off. Defaults to the
// logger of the client that makes the locks, see [core.LoggerOf].
func WithLogger(logger *slog.Logger) Option {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return func(c *Config) { c.Logger = logger }
}

// WithDescribedBy sets the URI of the page that tells clients which key they have to send; a refused key links to it.
// Defaults to none.
func WithDescribedBy(uri string) Option {
	return func(c *Config) { c.DescribedBy = uri }
}

// OptionalKey lets requests pass unguarded that lack what the key is made of. Defaults to refusing them with 400.
func OptionalKey() Option {
	return func(c *Config) { c.OptionalKey = true }
}

// WithKeySecret makes the hashes of keys with a secret (HMAC), so that nobody who reads Redis can find out by guessing
// whose they are: user names and e-mail addresses are few. All instances need the same secret, at least 16 bytes; with
// another one nothing recorded is found. Defaults to none.
func WithKeySecret(secret []byte) Option {
	secret = append([]byte{}, secret...) // not nil, so that an empty one is an error and not the default
	return func(c *Config) { c.KeySecret = secret }
}

// WithPreferWait lets clients choose how long to wait by "Prefer: wait=10" (RFC 7240), up to a limit, instead of
// [WithWait]. Defaults to 0: they cannot.
func WithPreferWait(limit time.Duration) Option {
	return func(c *Config) { c.PreferWait = limit }
}

// WithAskTimeout sets how long Redis may take to answer a request that does not wait. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option {
	return func(c *Config) { c.AskTimeout = limit }
}

// WithWaiters bounds how many requests wait at this guard at a time in this process: of one key, and at all. One more
// is answered at once. Defaults to 16 and 1024.
func WithWaiters(perKey, all int) Option {
	return func(c *Config) { c.WaitersPerKey, c.Waiters = perKey, all }
}

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the release or the record, before the
// answer is sent all the same; that is tried further in the background. Defaults to 2 s.
func WithFinishTimeout(limit time.Duration) Option {
	return func(c *Config) { c.FinishTimeout = limit }
}
