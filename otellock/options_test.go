package otellock_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/otellock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestWrongOptions: each is refused with its name.
func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string][]otellock.Option{
		"WithMeterProvider":       {otellock.WithMeterProvider(nil)},
		"WithTracerProvider":      {otellock.WithTracerProvider(nil)},
		"WithFamily":              {otellock.WithFamily(nil)},
		"WithElections: no name":  {otellock.WithElections()},
		"WithSemaphores: a name":  {otellock.WithSemaphores("a", "")},
		"WithoutSpans together w": {otellock.WithoutSpans(), otellock.WithHoldSpans()},
	} {
		if _, err := otellock.New(opts...); err == nil || !strings.HasPrefix(err.Error(), "holdfast: otellock: "+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := otellock.New(nil, otellock.WithoutSpans()); err != nil {
		t.Error(err)
	}
}

// TestPrefix: names without a separator are one family.
func TestPrefix(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"order:42": "order", "a:b:c": "a", "9f3c": "_OTHER", ":x": "_OTHER", "": "_OTHER"} {
		if got := otellock.Prefix(":")(name); got != want {
			t.Errorf("%q is in family %q, want %q", name, got, want)
		}
	}
	if got := otellock.Prefix("")("order"); got != "_OTHER" {
		t.Errorf("family %q without a separator", got)
	}
}

// TestTwoForOneClient: each sees all acquisitions.
func TestTwoForOneClient(t *testing.T) {
	t.Parallel()
	first, second := newTelemetry(t), newTelemetry(t)
	ctx := first.hooks.AcquireStart(context.Background(), core.AcquireStart{Mode: core.ModeMutex})
	ctx = second.hooks.AcquireStart(ctx, core.AcquireStart{Mode: core.ModeMutex})
	for _, m := range []*telemetry{first, second} {
		m.hooks.AcquireEnd(ctx, core.AcquireEnd{Mode: core.ModeMutex, Token: 1})
		m.want(1, "holdfast.leases")
	}
}

// TestAllocations: a lock and its release cost at most four with metrics and without spans.
func TestAllocations(t *testing.T) {
	m := newTelemetry(t) // not parallel: AllocsPerRun counts the whole process
	var err error
	if m.hooks, err = otellock.New(otellock.WithMeterProvider(m.meters), otellock.WithoutSpans()); err != nil {
		t.Fatal(err)
	}
	pair := func() {
		ctx := m.hooks.AcquireStart(context.Background(), core.AcquireStart{Name: "order:42", Mode: core.ModeMutex})
		m.hooks.AcquireEnd(ctx, core.AcquireEnd{Name: "order:42", Mode: core.ModeMutex, Token: 1})
		m.hooks.ReleaseEnd(ctx, core.ReleaseEnd{Name: "order:42", Mode: core.ModeMutex, Token: 1})
	}
	if got := testing.AllocsPerRun(1000, pair); got > 1 {
		t.Errorf("%v allocations, want the context only", got)
	}
}

// TestScopeVersion: metrics and spans have the version of the last release as the version of their scope: otel_scope_version.
func TestScopeVersion(t *testing.T) {
	t.Parallel()
	changes, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	released := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\]`).FindSubmatch(changes)
	if released == nil {
		t.Fatal("CHANGELOG.md has no release")
	}
	want := instrumentation.Scope{Name: "github.com/holdfast-go/holdfast/otellock", Version: string(released[1])}
	m := newTelemetry(t)
	unlock(t, mustLock(t, m.client(testkit.Start(t).Client()).Mutex("a")))
	var all metricdata.ResourceMetrics
	if err := m.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.ScopeMetrics) != 1 || all.ScopeMetrics[0].Scope != want {
		t.Errorf("metrics have %+v, want the scope %+v: set version of metrics.go to that of CHANGELOG.md", all.ScopeMetrics, want)
	}
	spans := m.spans.Ended()
	if len(spans) == 0 || spans[0].InstrumentationScope() != want {
		t.Errorf("%d spans, want the scope %+v", len(spans), want)
	}
}
