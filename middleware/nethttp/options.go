package httplock

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// Option configures a guard. An invalid value is reported when the guard is built.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (o optionFunc) apply(c *config) { o(c) }

type config struct {
	engine middleware.Config
	refuse ConflictHandler
}

func newConfig(opts []Option) config {
	c := config{engine: middleware.DefaultConfig(), refuse: Refuse}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&c)
		}
	}
	return c
}

// WithMethods sets the request methods that are guarded; requests of others pass. Methods are in upper case.
// Defaults to all but GET, HEAD, OPTIONS and TRACE.
func WithMethods(methods ...string) Option {
	methods = append([]string{}, methods...) // not nil, so that none is an error and not the default
	return optionFunc(func(c *config) { c.engine.Methods = slices.Clone(methods) })
}

// WithWait sets how long a request waits for the one before it. It waits no longer than until its context
// ends, and no longer than until one second before http.Server.WriteTimeout. 0 asks once. A sequential client
// may be faster with its next request than the release of its last one, so 0 refuses requests that collided
// with nothing. Defaults to 250 ms.
func WithWait(limit time.Duration) Option {
	return optionFunc(func(c *config) { c.engine.Wait = limit })
}

// WithBodyLimit sets up to how many bytes of body are read before the lock is asked for. A client that sends
// a larger body slowly holds the lock as long as the handler lets it. 0 reads none, as a handler needs that
// answers before it has read all; a key of the body is still made of it: see [ByJSON]. Defaults to 64 KiB.
func WithBodyLimit(bytes int64) Option {
	return optionFunc(func(c *config) { c.engine.BodyLimit = bytes })
}

// WithLock sets options of the lock, [core.WithMaxHold] for instance. [core.WithWait] is of no use here: see
// [WithWait]. Defaults to none: those of the strategy and its client hold.
func WithLock(opts ...core.LockOption) Option {
	opts = slices.Clone(opts)
	return optionFunc(func(c *config) { c.engine.Lock = append(c.engine.Lock, opts...) })
}

// FailOpen lets requests run without lock while Redis cannot be asked: at the same time as others, without
// fencing token, and known by [Degraded]. Defaults to refusing them with 503.
func FailOpen() Option {
	return optionFunc(func(c *config) { c.engine.FailOpen = true })
}

// WithConflictStatus sets the status of a request whose lock is held: 423, 429 or 503 for clients that know
// those better. Its code stays lock-conflict. Defaults to 409.
func WithConflictStatus(status int) Option {
	return optionFunc(func(c *config) { c.engine.ConflictStatus = status })
}

// WithConflictHandler sets who answers refused requests, of all kinds but those whose client is gone. It may
// change the conflict and leave the writing to [Refuse]. Defaults to Refuse.
func WithConflictHandler(handler ConflictHandler) Option {
	return optionFunc(func(c *config) { c.refuse = handler })
}

// WithProblemBase sets the URI in front of the code in the type of a problem, for example
// "https://api.example.com/problems/". Defaults to none: the type is about:blank.
func WithProblemBase(uri string) Option {
	return optionFunc(func(c *config) { c.engine.ProblemBase = uri })
}

// WithHooks sets functions that are told what happens to requests. Defaults to none.
func WithHooks(hooks Hooks) Option {
	return optionFunc(func(c *config) { c.engine.Hooks = hooks })
}

// What hooks are told.
type (
	// Hooks are told what happens to guarded requests.
	Hooks = middleware.Hooks
	// Acquired describes a request that has its lock.
	Acquired = middleware.Acquired
	// Failure describes a request that ran with less than the lock promises.
	Failure = middleware.Failure
)

// Degraded reports whether ctx is that of a request which runs without lock: see [FailOpen].
func Degraded(ctx context.Context) bool { return middleware.Degraded(ctx) }

// Conflict is why a request was refused.
type Conflict = middleware.Conflict

// ConflictHandler answers a refused request.
type ConflictHandler func(w http.ResponseWriter, r *http.Request, conflict *Conflict)
