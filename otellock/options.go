package otellock

import (
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option configures [New], which returns an error for an invalid value.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (o optionFunc) apply(c *config) { o(c) }

type config struct {
	meters     metric.MeterProvider
	tracers    trace.TracerProvider // nil: the global one
	spans      bool
	holdSpans  bool
	names      bool // in spans
	family     func(name string) string
	elections  map[string]bool
	semaphores map[string]bool
	err        error
}

func newConfig(opts []Option) config {
	c := config{
		meters: otel.GetMeterProvider(), spans: true,
		elections: map[string]bool{}, semaphores: map[string]bool{},
	}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&c)
		}
	}
	if !c.spans && (c.holdSpans || c.names || c.tracers != nil) {
		c.refuse("WithoutSpans together with an option of spans")
	}
	if c.tracers == nil {
		c.tracers = otel.GetTracerProvider()
	}
	return c
}

func (c *config) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("holdfast: otellock: "+format, args...)
	}
}

// named adds the names that an option got to a set.
func (c *config) named(option string, set map[string]bool, names []string) {
	if len(names) == 0 {
		c.refuse("%s: no name", option)
	}
	for _, name := range names {
		if name == "" {
			c.refuse("%s: a name is empty", option)
		}
		set[name] = true
	}
}

// WithMeterProvider sets the provider of the metrics. Nil is refused. Defaults to [otel.GetMeterProvider].
func WithMeterProvider(provider metric.MeterProvider) Option {
	return optionFunc(func(c *config) {
		if provider == nil {
			c.refuse("WithMeterProvider: nil")
		}
		c.meters = provider
	})
}

// WithTracerProvider sets the provider of the spans. Nil is refused: use [WithoutSpans]. Defaults to
// [otel.GetTracerProvider].
func WithTracerProvider(provider trace.TracerProvider) Option {
	return optionFunc(func(c *config) {
		if provider == nil {
			c.refuse("WithTracerProvider: nil")
		}
		c.tracers = provider
	})
}

// WithoutSpans leaves the spans out, even those that would not be sampled. That saves some allocations for each call. It is
// refused together with [WithTracerProvider], [WithHoldSpans] or [WithNames]. Defaults to off.
func WithoutSpans() Option {
	return optionFunc(func(c *config) { c.spans = false })
}

// WithHoldSpans makes a span for each lease that ends. It is made at the end, with the time of the grant as its start. A
// backend that decides early which traces to keep may drop the span of a long hold. Defaults to off: only lost leases have one.
func WithHoldSpans() Option {
	return optionFunc(func(c *config) { c.holdSpans = true })
}

// WithNames puts the names of locks, and keys of Once, into spans. Take care: names may contain data of your users.
// Metrics do not get them. Defaults to off.
func WithNames() Option {
	return optionFunc(func(c *config) { c.names = true })
}

// WithFamily adds an attribute to metrics and spans of locks: what family returns for the name of the lock, or the key of the Once.
// Return few different values, such as [Prefix] does: each is a time series of its own, in each metric. It is called for
// every acquisition, by many goroutines. Nil is refused. Defaults to none.
func WithFamily(family func(name string) string) Option {
	return optionFunc(func(c *config) {
		if family == nil {
			c.refuse("WithFamily: nil")
		}
		c.family = family
	})
}

// WithElections adds the metric holdfast.leader for the elections with these names. Without a name it is refused. Several
// of these options add up. Defaults to none.
func WithElections(names ...string) Option {
	return optionFunc(func(c *config) { c.named("WithElections", c.elections, names) })
}

// WithSemaphores adds the metrics holdfast.permits.usage and holdfast.permits.limit for the semaphores with these names.
// Without a name it is refused. Several of these options add up. Defaults to none.
func WithSemaphores(names ...string) Option {
	return optionFunc(func(c *config) { c.named("WithSemaphores", c.semaphores, names) })
}
