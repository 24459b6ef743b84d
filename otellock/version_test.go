package otellock_test

import (
	"os"
	"regexp"
	"testing"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestScopeVersion: metrics and spans have the version of the last release as that of their scope: otel_scope_version.
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
