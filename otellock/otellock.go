package otellock

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
)

// telemetry records the events of hooks. Its pointer is the key of its calls in contexts, so several may serve one client.
type telemetry struct {
	instruments
	config config
	tracer trace.Tracer
	named  map[string]*measurement // of elections and semaphores
}

// New returns hooks that record metrics and spans, for [core.WithHooks]. One result may serve several clients: their counts
// add up. It returns an error for an invalid option, or if the MeterProvider refuses an instrument.
func New(opts ...Option) (core.Hooks, error) {
	t := &telemetry{config: newConfig(opts)}
	if t.config.err != nil {
		return core.Hooks{}, t.config.err
	}
	if err := t.init(t.config.meters.Meter(scope, metric.WithInstrumentationVersion(version))); err != nil {
		return core.Hooks{}, fmt.Errorf("holdfast: otellock: %w", err)
	}
	t.tracer = t.config.tracers.Tracer(scope, trace.WithInstrumentationVersion(version))
	t.initZeros(context.Background())
	return core.Hooks{
		AcquireStart: t.acquireStart,
		Wait:         t.wait,
		AcquireEnd:   t.acquireEnd,
		ReleaseEnd:   t.releaseEnd,
		BeginStart:   t.beginStart,
		BeginEnd:     t.beginEnd,
		AttemptEnd:   t.attemptEnd,
		ProofAsked:   t.proofAsked,
		Renewed:      t.renewed,
		Lost:         t.lost,
		RunStart:     t.runStart,
		RunEnd:       t.runEnd,
		NotRun:       t.notRun,
		Incident:     t.incident,
	}, nil
}
