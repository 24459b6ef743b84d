package httpguard

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Option changes the [Config] of a guard, or a setting that one adapter has beside it. The Option of each adapter is
// this type, so one list of options can serve guards of several frameworks. Making the guard reports an invalid value,
// and an option of another adapter.
type Option interface {
	// apply changes the Config, or the settings of the adapter.
	apply(c *Config, adapter any)
}

// configOption is an option that all adapters have.
type configOption func(*Config)

func (o configOption) apply(c *Config, _ any) { o(c) }

// AdapterOption makes an option that only one adapter has. The type of its settings, T, is of that adapter alone; set
// changes the settings that the adapter passes to [Config.Apply]. The error of a guard of another adapter contains
// the name, for instance "ginlock.WithRefusalHandler".
func AdapterOption[T any](name string, set func(settings *T)) Option {
	return adapterOption[T]{name, set}
}

type adapterOption[T any] struct {
	name string
	set  func(*T)
}

func (o adapterOption[T]) apply(c *Config, adapter any) {
	if settings, ok := adapter.(*T); ok {
		o.set(settings)
	} else {
		c.refuse(fmt.Errorf("holdfast: %s is an option of another adapter", o.name))
	}
}

// refuse keeps the first error of an option, which is reported when the guard is made.
func (c *Config) refuse(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Apply applies options in their order, for adapters. Adapter is a pointer to the settings that the adapter's own
// options change: see [AdapterOption]. It is nil for an adapter without such options. Apply ignores nil options. An
// option of another adapter is an error when the guard is made.
func (c *Config) Apply(adapter any, opts ...Option) {
	for _, opt := range opts {
		if opt != nil {
			opt.apply(c, adapter)
		}
	}
}

// WithMethods sets the guarded request methods, in upper case. Requests of other methods pass. Defaults to all but
// GET, HEAD, OPTIONS and TRACE; to POST and PATCH for Idempotent.
func WithMethods(methods ...string) Option {
	methods = append([]string{}, methods...) // not nil, so that none is an error and not the default
	return configOption(func(c *Config) { c.Methods = slices.Clone(methods) })
}

// WithWait is that of package httplock, which documents it.
func WithWait(limit time.Duration) Option {
	return configOption(func(c *Config) { c.Wait = limit })
}

// WithBodyLimit is that of package httplock, which documents it.
func WithBodyLimit(bytes int64) Option {
	return configOption(func(c *Config) { c.BodyLimit = bytes })
}

// WithBodyMemory is that of package httplock, which documents it.
func WithBodyMemory(bytes int64) Option {
	return configOption(func(c *Config) { c.BodyMemory = bytes })
}

// WithLock adds options of the lock, or of the lease of a run: for instance [core.WithTTL] or [core.WithMaxHold].
// [core.WithWait] has no effect here: see [WithWait]. Defaults to none: those of the strategy and its client apply.
func WithLock(opts ...core.LockOption) Option {
	opts = slices.Clone(opts)
	return configOption(func(c *Config) { c.Lock = append(c.Lock, opts...) })
}

// FailOpen is that of package httplock, which documents it.
func FailOpen() Option {
	return configOption(func(c *Config) { c.FailOpen = true })
}

// WithHooks sets functions that are called with what happens to requests. Defaults to none.
func WithHooks(hooks Hooks) Option {
	return configOption(func(c *Config) { c.Hooks = hooks })
}

// WithLogger is that of package httplock, which documents it.
func WithLogger(logger *slog.Logger) Option {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return configOption(func(c *Config) { c.Logger = logger })
}

// OptionalKey lets requests that lack a part of the key pass unguarded. Defaults to refusing them with 400.
func OptionalKey() Option {
	return configOption(func(c *Config) { c.OptionalKey = true })
}

// WithKeySecret is that of package httplock, which documents it.
func WithKeySecret(secret []byte) Option {
	secret = append([]byte{}, secret...) // not nil, so that an empty one is an error and not the default
	return configOption(func(c *Config) { c.KeySecret = secret })
}

// WithAskTimeout sets how long Redis may take to answer a request that does not wait, or waits for less than that.
// With [FailOpen], a request that waits for longer gives Redis all its wait, 5 s at most. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option {
	return configOption(func(c *Config) { c.AskTimeout = limit })
}

// WithWaiters is that of package httplock, which documents it.
func WithWaiters(perKey, all int) Option {
	return configOption(func(c *Config) { c.WaitersPerKey, c.Waiters = perKey, all })
}

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the release or the record, even if the context of
// the request is over. It waits for half of the time at most that the server's WriteTimeout leaves. After that the answer is
// sent all the same, and the client retries in the background. Defaults to 2 s.
func WithFinishTimeout(limit time.Duration) Option {
	return configOption(func(c *Config) { c.FinishTimeout = limit })
}
