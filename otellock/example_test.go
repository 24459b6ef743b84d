package otellock_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/otellock"
)

// The hooks go to each client of the process. The reader of this example stands for your exporter.
func ExampleNew() {
	reader := metric.NewManualReader()
	hooks, err := otellock.New(otellock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	if err != nil {
		fmt.Println(err)
		return
	}
	server := locktest.NewServer()
	defer server.Close()
	locks, err := core.New(server.Redis(), core.WithHooks(hooks))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close()

	err = locks.Mutex("order:42").Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("held inside:", leases(reader))
		return nil
	})
	fmt.Println("held afterwards:", leases(reader), err)
	// Output:
	// held inside: 1
	// held afterwards: 0 <nil>
}

// leases returns the value of the metric holdfast.leases.
func leases(reader metric.Reader) (held int64) {
	var all metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &all)
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "holdfast.leases" {
			held += sum.DataPoints[0].Value
		}
	}
	return held
}

// Names like "order:42" have a part of which there are few.
func ExamplePrefix() {
	family := otellock.Prefix(":")
	fmt.Println(family("order:42"), family("payment:7f3a"), family("7f3a"))
	// Output: order payment _OTHER
}

// With this option each lease has a span, which is made when the lease ends.
func ExampleWithHoldSpans() {
	spans := tracetest.NewSpanRecorder()
	hooks, err := otellock.New(
		otellock.WithTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans))),
		otellock.WithHoldSpans(),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := locktest.NewServer()
	defer server.Close()
	locks, err := core.New(server.Redis(), core.WithHooks(hooks))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close()

	_ = locks.Mutex("order:42").Do(context.Background(), func(context.Context) error { return nil })
	for _, span := range spans.Ended() {
		fmt.Println(span.Name())
	}
	// Output:
	// holdfast.acquire
	// holdfast.hold
}
