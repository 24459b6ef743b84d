package otellock_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/otellock"
)

// BenchmarkPair measures a lock and its release on a Redis of this machine: the table in docs/observability.md. Its cases
// take turns, so that all of them meet what else the machine does.
func BenchmarkPair(b *testing.B) {
	server := redistest.Start(b)
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	sampled := trace.NewTracerProvider()
	unsampled := trace.NewTracerProvider(trace.WithSampler(trace.NeverSample()))
	for _, c := range []struct {
		name string
		opts []core.Option
	}{
		{"no hooks", nil},
		{"empty hooks", []core.Option{core.WithHooks(emptyHooks())}},
		{"metrics", []core.Option{withTelemetry(b, otellock.WithMeterProvider(meters), otellock.WithoutSpans())}},
		{"metrics by family", []core.Option{withTelemetry(b, otellock.WithMeterProvider(meters), otellock.WithoutSpans(),
			otellock.WithFamily(otellock.Prefix(":")))}},
		{"metrics and spans not sampled", []core.Option{withTelemetry(b, otellock.WithMeterProvider(meters), otellock.WithTracerProvider(unsampled))}},
		{"metrics and spans", []core.Option{withTelemetry(b, otellock.WithMeterProvider(meters), otellock.WithTracerProvider(sampled))}},
	} {
		b.Run(c.name, func(b *testing.B) {
			locks, err := core.New(server.Client(), append(c.opts, core.WithLogger(nil))...)
			if err != nil {
				b.Fatal(err)
			}
			defer locks.Close()
			lock := locks.Mutex("order:42")
			b.ReportAllocs()
			for b.Loop() {
				lease, err := lock.Lock(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if err := lease.Unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHooks measures the same without Redis: what the hooks of a lock and its release take.
func BenchmarkHooks(b *testing.B) {
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	hooks, err := otellock.New(otellock.WithMeterProvider(meters), otellock.WithoutSpans())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		ctx := hooks.AcquireStart(b.Context(), core.AcquireStart{Name: "order:42", Strategy: core.StrategyMutex})
		hooks.AcquireEnd(ctx, core.AcquireEnd{Name: "order:42", Strategy: core.StrategyMutex, Token: 1})
		hooks.ReleaseEnd(ctx, core.ReleaseEnd{Name: "order:42", Strategy: core.StrategyMutex, Token: 1})
	}
}

func withTelemetry(b *testing.B, opts ...otellock.Option) core.Option {
	b.Helper()
	hooks, err := otellock.New(opts...)
	if err != nil {
		b.Fatal(err)
	}
	return core.WithHooks(hooks)
}

// emptyHooks are the hooks that otellock uses, without effect.
func emptyHooks() core.Hooks {
	return core.Hooks{
		AcquireStart: func(ctx context.Context, _ core.AcquireStart) context.Context { return ctx },
		AcquireEnd:   func(context.Context, core.AcquireEnd) {},
		ReleaseEnd:   func(context.Context, core.ReleaseEnd) {},
	}
}
