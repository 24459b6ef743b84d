package otellock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/otellock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

const (
	long   = time.Minute      // a TTL that no test outlasts
	within = 20 * time.Second // of conditions that a busy machine may keep waiting for
)

// telemetry reads what hooks have recorded.
type telemetry struct {
	t       *testing.T
	reader  *metric.ManualReader
	meters  *metric.MeterProvider
	spans   *tracetest.SpanRecorder
	tracers *trace.TracerProvider
	hooks   core.Hooks
}

func newTelemetry(t *testing.T, opts ...otellock.Option) *telemetry {
	t.Helper()
	m := &telemetry{t: t, reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	m.tracers = trace.NewTracerProvider(trace.WithSpanProcessor(m.spans))
	m.meters = metric.NewMeterProvider(metric.WithReader(m.reader), metric.WithCardinalityLimit(2000))
	hooks, err := otellock.New(append([]otellock.Option{
		otellock.WithMeterProvider(m.meters), otellock.WithTracerProvider(m.tracers),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	m.hooks = hooks
	return m
}

// client returns a client with these hooks, which is closed at the end of the test.
func (m *telemetry) client(rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	m.t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithTTL(long), core.WithLogger(nil), core.WithHooks(m.hooks)}, opts...)...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// point is the value of one set of attributes: the sum of a counter, the count of a histogram.
type point struct {
	attributes attribute.Set
	value      int64
	sum        float64 // of a histogram
	exemplars  []metricdata.Exemplar[float64]
}

// points returns the points of a metric whose attributes contain all of these.
func (m *telemetry) points(name string, with ...attribute.KeyValue) (found []point) {
	m.t.Helper()
	var all metricdata.ResourceMetrics
	if err := m.reader.Collect(context.Background(), &all); err != nil {
		m.t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			if one.Name == name {
				found = pointsOf(one.Data)
			}
		}
	}
	var matching []point
	for _, p := range found {
		if contains(p.attributes, with) {
			matching = append(matching, p)
		}
	}
	return matching
}

func pointsOf(data metricdata.Aggregation) (points []point) {
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes: p.Attributes, value: p.Value})
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes: p.Attributes, value: p.Value})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			points = append(points, point{p.Attributes, int64(p.Count), p.Sum, p.Exemplars})
		}
	}
	return points
}

func contains(set attribute.Set, with []attribute.KeyValue) bool {
	for _, kv := range with {
		if value, ok := set.Value(kv.Key); !ok || value != kv.Value {
			return false
		}
	}
	return true
}

// value returns the sum of the points.
func (m *telemetry) value(name string, with ...attribute.KeyValue) (sum int64) {
	m.t.Helper()
	for _, p := range m.points(name, with...) {
		sum += p.value
	}
	return sum
}

// want fails the test unless the metric has this value.
func (m *telemetry) want(want int64, name string, with ...attribute.KeyValue) {
	m.t.Helper()
	if got := m.value(name, with...); got != want {
		m.t.Errorf("%s%v is %d, want %d: %v", name, with, got, want, m.points(name))
	}
}

// eventually waits until the metric has this value.
func (m *telemetry) eventually(want int64, name string, with ...attribute.KeyValue) {
	m.t.Helper()
	testkit.Eventually(m.t, within, name, func() bool { return m.value(name, with...) == want })
}

// ended returns the spans with this name that have ended.
func (m *telemetry) ended(name string) (spans []trace.ReadOnlySpan) {
	for _, span := range m.spans.Ended() {
		if span.Name() == name {
			spans = append(spans, span)
		}
	}
	return spans
}

func strategy(name core.Mode) attribute.KeyValue {
	return attribute.String("holdfast.strategy", string(name))
}

func outcome(name string) attribute.KeyValue { return attribute.String("holdfast.outcome", name) }

func end(name string) attribute.KeyValue { return attribute.String("holdfast.end", name) }

func cause(name string) attribute.KeyValue { return attribute.String("holdfast.cause", name) }

func contended(is bool) attribute.KeyValue { return attribute.Bool("holdfast.contended", is) }

var overflow = attribute.Bool("otel.metric.overflow", true)

func family(name string) attribute.KeyValue { return attribute.String("holdfast.family", name) }

func named(name string) attribute.KeyValue { return attribute.String("holdfast.name", name) }

func mustLock(t *testing.T, l *core.Lock, opts ...core.LockOption) *core.Lease {
	t.Helper()
	lease, err := l.Lock(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func unlock(t *testing.T, l *core.Lease) {
	t.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		t.Error(err)
	}
}

// waits returns a channel with the result of a Lock that has begun to wait.
func (m *telemetry) waits(ctx context.Context, l *core.Lock, opts ...core.LockOption) <-chan error {
	m.t.Helper()
	before := m.value("holdfast.waiters")
	result := make(chan error, 1)
	go func() {
		lease, err := l.Lock(ctx, opts...)
		if err == nil {
			err = lease.Unlock(context.Background())
		}
		result <- err
	}()
	m.eventually(before+1, "holdfast.waiters")
	return result
}
