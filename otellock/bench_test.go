package otellock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/otellock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// contestant is a lock of a client with some hooks, and these hooks as guards call them.
type contestant struct {
	name   string
	lock   *core.Lock
	guards guard.Hooks
}

// pair locks and unlocks.
func (c contestant) pair(b *testing.B) {
	lease, err := c.lock.Lock(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := lease.Unlock(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// contestants share a Redis of this machine.
func contestants(b *testing.B) (all []contestant) {
	server := testkit.Start(b)
	meters := otellock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	sampled := otellock.WithTracerProvider(trace.NewTracerProvider())
	unsampled := otellock.WithTracerProvider(trace.NewTracerProvider(trace.WithSampler(trace.NeverSample())))
	for _, c := range []struct {
		name  string
		hooks core.Hooks
	}{
		{"no-hooks", core.Hooks{}},
		{"empty-hooks", emptyHooks()},
		{"metrics", newHooks(b, meters, otellock.WithoutSpans())},
		{"metrics-by-family", newHooks(b, meters, otellock.WithoutSpans(), otellock.WithFamily(otellock.Prefix(":")))},
		{"metrics-and-spans-not-sampled", newHooks(b, meters, unsampled)},
		{"metrics-and-spans", newHooks(b, meters, sampled)},
	} {
		locks, err := core.New(server.Client(), core.WithHooks(c.hooks), core.WithLogger(nil))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = locks.Close() })
		all = append(all, contestant{c.name, locks.Mutex("order:" + c.name), guard.HooksOf(seal.FactsOf(locks))})
	}
	return all
}

// BenchmarkPair measures the allocations of a lock and its release: the table in docs/observability.md.
func BenchmarkPair(b *testing.B) {
	for _, c := range contestants(b) {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.pair(b)
			}
		})
	}
}

// BenchmarkRun measures what a guard's report of one run takes: a table in docs/observability.md.
func BenchmarkRun(b *testing.B) {
	for _, c := range contestants(b) {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				report(b.Context(), c.guards)
			}
		})
	}
}

// BenchmarkTurns measures the time of a lock and its release: the same table. The contestants take turns, so that all
// meet the same load of the machine, and the median leaves out what else ran.
func BenchmarkTurns(b *testing.B) {
	all := contestants(b)
	took := make([][]float64, len(all))
	for b.Loop() {
		for i, c := range all {
			began := time.Now()
			c.pair(b)
			took[i] = append(took[i], float64(time.Since(began)))
		}
	}
	for i, c := range all {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2], "ns/"+c.name)
	}
}

// BenchmarkHooks measures what the hooks of a lock and its release take by themselves.
func BenchmarkHooks(b *testing.B) {
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	hooks := newHooks(b, otellock.WithMeterProvider(meters), otellock.WithoutSpans())
	b.ReportAllocs()
	for b.Loop() {
		ctx := hooks.AcquireStart(b.Context(), core.AcquireStart{Name: "order:42", Mode: core.ModeMutex})
		hooks.AcquireEnd(ctx, core.AcquireEnd{Name: "order:42", Mode: core.ModeMutex, Token: 1})
		hooks.ReleaseEnd(ctx, core.ReleaseEnd{Name: "order:42", Mode: core.ModeMutex, Token: 1})
	}
}

func newHooks(b *testing.B, opts ...otellock.Option) core.Hooks {
	b.Helper()
	hooks, err := otellock.New(opts...)
	if err != nil {
		b.Fatal(err)
	}
	return hooks
}

// emptyHooks are the hooks that otellock uses, without effect.
func emptyHooks() core.Hooks {
	return core.Hooks{
		AcquireStart: func(ctx context.Context, _ core.AcquireStart) context.Context { return ctx },
		Wait:         func(context.Context, core.Wait) {},
		AcquireEnd:   func(context.Context, core.AcquireEnd) {},
		ReleaseEnd:   func(context.Context, core.ReleaseEnd) {},
		Renewed:      func(context.Context, core.Renewed) {},
		Lost:         func(context.Context, core.Lost) {},
		RunStart:     func(ctx context.Context, _ core.RunStart) context.Context { return ctx },
		RunEnd:       func(context.Context, core.RunEnd) {},
		NotRun:       func(context.Context, core.NotRun) {},
		Incident:     func(context.Context, core.Incident) {},
	}
}
