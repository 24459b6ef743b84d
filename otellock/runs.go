package otellock

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
)

// run is one run of a guard. Like call, it is the context of the run, and so reaches the hooks of its end and its incidents.
type run struct {
	context.Context // of the work, with the span of the run
	*telemetry

	place, label string
	caller       context.Context
	span         trace.Span // nil without spans
	lost, ended  atomic.Bool
}

// runKey is the key of the run in its context. The acquisition, which may be in the same context, has a key of its own.
type runKey struct{ *telemetry }

// Value returns the run itself for its key.
func (r *run) Value(key any) any {
	if key == any(runKey{r.telemetry}) {
		return r
	}
	return r.Context.Value(key)
}

// runOf returns the innermost run whose context ctx is or descends from; nil if there is none.
func (t *telemetry) runOf(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{t}).(*run)
	return r
}

func (t *telemetry) runStart(ctx context.Context, start core.RunStart) context.Context {
	r := &run{Context: ctx, telemetry: t, place: start.Place, label: start.Label, caller: ctx}
	per := runLabels{place: start.Place, label: start.Label}
	measured := t.perPlace.of(per)
	t.runsActive.Add(ctx, 1, measured.add...)
	t.runWait.Record(ctx, start.Waited.Seconds(), measured.record...)
	if !start.Due.IsZero() {
		t.runLateness.Record(ctx, max(0, time.Since(start.Due)).Seconds(), measured.record...)
	}
	if t.config.spans {
		r.startSpan(start)
	}
	return r
}

// runEnd records the end of a run. The number of runs in progress stays exact if the hook of the start was not called, as
// after a panic of another hook, and if the hook of the end is called again.
func (t *telemetry) runEnd(ctx context.Context, end core.RunEnd) {
	r := t.runOf(ctx)
	if r == nil || !r.ended.CompareAndSwap(false, true) {
		return
	}
	per := runLabels{place: r.place, label: r.label}
	t.runsActive.Add(ctx, -1, t.perPlace.of(per).add...)
	per.value, per.state = runOutcome(end, r.lost.Load()), end.State
	t.runDuration.Record(ctx, end.Took.Seconds(), t.perRun.of(per).record...)
	if r.span != nil {
		r.endSpan(per.value, end)
	}
}

func (t *telemetry) notRun(ctx context.Context, not core.NotRun) {
	per := runLabels{place: not.Place, label: not.Label, value: skipReason(not)}
	t.runsSkipped.Add(ctx, 1, t.perReason.of(per).add...)
	if t.config.spans {
		skipEvent(ctx, not, per)
	}
}

func (t *telemetry) incident(ctx context.Context, incident core.Incident) {
	per := runLabels{place: incident.Place, label: incident.Label, value: word(incident.Kind)}
	t.incidents.Add(ctx, 1, t.perKind.of(per).add...)
	r := t.runOf(ctx)
	if r != nil && incident.Kind == core.IncidentLost {
		r.lost.Store(true)
	}
	if t.config.spans {
		incidentEvent(ctx, r, per)
	}
}
