package httplock

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// Option configures a guard. Making the guard reports an invalid value.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (o optionFunc) apply(c *config) { o(c) }

// shared is an option that all adapters have.
type shared middleware.Option

func (o shared) apply(c *config) { o(&c.engine) }

// Shared makes an option from one that all adapters have, for services that configure guards of several frameworks
// alike.
func Shared(o middleware.Option) Option { return shared(o) }

type config struct {
	engine middleware.Config
	skip   func(*http.Request) bool
	refuse RefusalHandler
}

func newConfig(defaults middleware.Config, opts []Option) config {
	c := config{
		engine: defaults,
		skip:   func(*http.Request) bool { return false },
		refuse: Refuse,
	}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&c)
		}
	}
	return c
}

// check finds what is wrong with the options that are net/http's alone.
func (c *config) check() error {
	switch {
	case c.skip == nil:
		return errors.New("holdfast: WithSkip: the function is nil")
	case c.refuse == nil:
		return errors.New("holdfast: WithRefusalHandler: the handler is nil")
	}
	return nil
}

// WithMethods sets the guarded request methods, in upper case. Requests of other methods pass. Defaults to all but
// GET, HEAD, OPTIONS and TRACE; to POST and PATCH for [Idempotent].
func WithMethods(methods ...string) Option { return shared(middleware.WithMethods(methods...)) }

// WithSkip sets a function that returns true for requests of the guarded methods that pass unguarded. Defaults to
// none.
func WithSkip(skip func(r *http.Request) bool) Option {
	return optionFunc(func(c *config) { c.skip = skip })
}

// WithWait sets how long a request waits for the one before it, see [middleware.WithWait]; 0 asks once.
// Defaults to 250 ms for [Exclusive], 0 for others.
func WithWait(limit time.Duration) Option { return shared(middleware.WithWait(limit)) }

// WithBodyLimit sets how many bytes of body are read before the lock is asked for, see [middleware.WithBodyLimit]. 0
// reads none, but a key of the body still reads it: see [ByJSON]. Defaults to 64 KiB, and to 1 MiB for [Idempotent],
// which refuses larger ones with 413.
func WithBodyLimit(bytes int64) Option { return shared(middleware.WithBodyLimit(bytes)) }

// WithBodyMemory bounds the total size of all buffered bodies in bytes, see [middleware.WithBodyMemory]. Defaults to
// 64 MiB.
func WithBodyMemory(bytes int64) Option { return shared(middleware.WithBodyMemory(bytes)) }

// WithLock adds options of the lock, for instance [core.WithMaxHold]; use [WithWait] in place of [core.WithWait].
// Defaults to none: those of the strategy and its client apply.
func WithLock(opts ...core.LockOption) Option { return shared(middleware.WithLock(opts...)) }

// FailOpen lets requests run unguarded while Redis cannot be asked. They may run at the same time as others or once
// more, without fencing token and without record; [Degraded] returns true for them. It does not apply if Redis answers
// but refuses, because it is full, or wants other rights or another password. Defaults to refusing requests with 503.
func FailOpen() Option { return shared(middleware.FailOpen()) }

// WithConflictStatus sets the status of a request whose lock is held, for instance 423, 429 or 503. Its code stays
// lock-conflict. Defaults to 409.
func WithConflictStatus(status int) Option { return shared(middleware.WithConflictStatus(status)) }

// WithRefusalHandler sets the function that answers every refused request: 400, 401, 409, 503 and all other codes,
// except requests whose client has left. It may change the conflict and call [Refuse] for the writing. Defaults to
// Refuse.
func WithRefusalHandler(handler RefusalHandler) Option {
	return optionFunc(func(c *config) { c.refuse = handler })
}

// WithProblemBase sets the URI in front of the code in the type of a problem, for example
// "https://api.example.com/problems/". Defaults to none: the type is about:blank.
func WithProblemBase(uri string) Option { return shared(middleware.WithProblemBase(uri)) }

// WithDescribedBy sets the URI of the page that tells clients which key to send; a refused key links to it. Defaults to
// none.
func WithDescribedBy(uri string) Option { return shared(middleware.WithDescribedBy(uri)) }

// OptionalKey lets requests without a key pass unguarded. Defaults to refusing them with 400.
func OptionalKey() Option { return shared(middleware.OptionalKey()) }

// WithKeySecret makes the hashes of keys with a secret, see [middleware.WithKeySecret]. Defaults to none.
func WithKeySecret(secret []byte) Option { return shared(middleware.WithKeySecret(secret)) }

// WithPreferWait lets clients choose the wait by "Prefer: wait=10", up to a limit. Defaults to 0: they cannot.
func WithPreferWait(limit time.Duration) Option { return shared(middleware.WithPreferWait(limit)) }

// WithAskTimeout sets how long Redis may take to answer a request that does not wait. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option { return shared(middleware.WithAskTimeout(limit)) }

// WithWaiters bounds how many requests of one key, and of all keys, wait at this guard in this process. Defaults to 16
// and 1024.
func WithWaiters(perKey, all int) Option { return shared(middleware.WithWaiters(perKey, all)) }

// WithLogger sets the logger for failures that clients do not cause, see [middleware.WithLogger]. Nil switches logging
// off. Defaults to the logger of the client that makes the locks.
func WithLogger(logger *slog.Logger) Option { return shared(middleware.WithLogger(logger)) }

// WithHooks sets functions that are called with what happens to requests. Defaults to none.
func WithHooks(hooks Hooks) Option { return shared(middleware.WithHooks(hooks)) }

// Arguments of hooks.
type (
	// Hooks are told what happens to guarded requests.
	Hooks = middleware.Hooks
	// Acquired describes a request that may run.
	Acquired = middleware.Acquired
	// Replayed describes a request that gets a recorded answer.
	Replayed = middleware.Replayed
	// Finished describes the end of a run behind Once or Idempotent.
	Finished = middleware.Finished
	// Failure describes a request that ran with less than its guard promises.
	Failure = middleware.Failure
)

// Conflict is why a request was refused.
type Conflict = middleware.Conflict

// RefusalHandler answers a refused request.
type RefusalHandler func(w http.ResponseWriter, r *http.Request, conflict *Conflict)
