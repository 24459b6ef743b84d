package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/otellock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	runs       = "holdfast.run.duration"
	active     = "holdfast.runs.active"
	skipped    = "holdfast.runs.skipped"
	incidents  = "holdfast.incidents"
	secretHash = "5ec2e7"
)

func place(name string) attribute.KeyValue { return attribute.String("holdfast.place", name) }

func label(name string) attribute.KeyValue { return attribute.String("holdfast.label", name) }

func state(name string) attribute.KeyValue { return attribute.String("holdfast.state", name) }

func reason(name string) attribute.KeyValue { return attribute.String("holdfast.reason", name) }

func incidentKind(name string) attribute.KeyValue { return attribute.String("holdfast.kind", name) }

// guardHooks returns the hooks of a client as guards call them.
func (m *telemetry) guardHooks() guard.Hooks {
	m.t.Helper()
	return guard.HooksOf(seal.FactsOf(m.client(testkit.Start(m.t).Client())))
}

var order = core.Work{Place: "http", Label: "POST /orders", KeyHash: secretHash}

// TestRuns: each run counts by its place, its label and how it ended, and is in progress until then.
func TestRuns(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	hooks := m.guardHooks()
	errOwn := errors.New("own")
	for _, test := range []struct {
		end            core.RunEnd
		incident       core.IncidentKind
		outcome, state string
	}{
		{core.RunEnd{State: core.StateCompleted}, "", "succeeded", "completed"},
		{core.RunEnd{Err: errOwn}, "", "failed", "none"},
		{core.RunEnd{Err: errOwn, State: core.StateUnknown}, "", "failed", "unknown"},
		{core.RunEnd{Panicked: true, State: core.StateUnknown}, "", "panicked", "unknown"},
		{core.RunEnd{Err: fmt.Errorf("own: %w", core.ErrLeaseLost)}, "", "lost", "none"},
		{core.RunEnd{State: core.StateCompleted}, core.IncidentLost, "lost", "completed"},
		{core.RunEnd{State: core.StateCompleted}, core.IncidentUnguarded, "succeeded", "completed"},
	} {
		as := []attribute.KeyValue{place("http"), label("POST /orders"), outcome(test.outcome), state(test.state)}
		before := m.value(runs, as...)
		ctx := hooks.RunStart(t.Context(), core.RunStart{Work: order, Waited: 250 * time.Millisecond})
		m.want(1, active, place("http"), label("POST /orders"))
		if test.incident != "" {
			hooks.Incident(ctx, core.Incident{Work: order, Kind: test.incident})
		}
		test.end.Work, test.end.Took = order, time.Second
		hooks.RunEnd(ctx, test.end)
		hooks.RunEnd(ctx, test.end) // counts once
		m.want(0, active)
		m.want(before+1, runs, as...)
	}
	m.want(7, runs)
	m.want(7, "holdfast.run.wait.duration", place("http"), label("POST /orders"))
	if waited := m.points("holdfast.run.wait.duration")[0].sum; waited != 7*0.25 {
		t.Errorf("waited for %v s", waited)
	}
	m.want(1, incidents, place("http"), label("POST /orders"), incidentKind("lost"))
	m.want(1, incidents, incidentKind("unguarded"))
	m.want(0, "holdfast.run.lateness")
	for _, name := range []string{runs, active, incidents} {
		for _, p := range m.points(name) {
			for _, kv := range p.attributes.ToSlice() {
				if kv.Value.Emit() == secretHash {
					t.Errorf("%s has the hash of a key: %v", name, kv)
				}
			}
		}
	}
}

// TestLateness: of ticks, and never negative, because a sum in Prometheus must not fall.
func TestLateness(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	hooks := m.guardHooks()
	for _, due := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		work := core.Work{Place: "cron", Label: "report", Due: due}
		hooks.RunEnd(hooks.RunStart(t.Context(), core.RunStart{Work: work}), core.RunEnd{Work: work})
	}
	points := m.points("holdfast.run.lateness", place("cron"), label("report"))
	if len(points) != 1 || points[0].value != 2 || points[0].sum < 3600 || points[0].sum > 3660 {
		t.Errorf("%+v", points)
	}
}

// TestSkipped: by reason in the form of attribute values; an unknown outcome has one reason in all places.
func TestSkipped(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	hooks := m.guardHooks()
	for _, not := range []core.NotRun{
		{Work: order, Reason: core.ReasonReplayed, Attempt: 1},
		{Work: order, Reason: "lock-unavailable", Err: core.ErrUnavailable},
		{Work: core.Work{Place: "cron"}, Reason: "not leader"},
		{Work: core.Work{Place: "cron"}, Reason: "taken", Err: fmt.Errorf("crashed: %w", core.ErrOutcomeUnknown)},
		{Work: order, Reason: "outcome-unknown", Err: core.ErrOutcomeUnknown},
		{Work: core.Work{Place: "task", Label: "\xff"}, Reason: "\xff"},
	} {
		hooks.NotRun(t.Context(), not)
	}
	m.want(6, skipped)
	m.want(1, skipped, place("http"), label("POST /orders"), reason("replayed"))
	m.want(1, skipped, place("http"), reason("lock_unavailable"))
	m.want(1, skipped, place("cron"), reason("not_leader"))
	m.want(1, skipped, place("cron"), reason("outcome_unknown"))
	m.want(1, skipped, place("http"), reason("outcome_unknown"))
	m.want(1, skipped, place("task"), label("\uFFFD"), reason("\uFFFD"))
	for _, p := range m.points(skipped, place("cron")) {
		if p.attributes.HasValue("holdfast.label") {
			t.Errorf("a label for work without one: %v", p.attributes)
		}
	}
}

// TestManyLabels: the bound of the SDK holds, and the runs in progress stay exact.
func TestManyLabels(t *testing.T) {
	t.Parallel()
	const labels = 2500
	m := newTelemetry(t)
	for i := range labels {
		work := core.Work{Place: "http", Label: fmt.Sprint(i)}
		m.hooks.RunEnd(m.hooks.RunStart(t.Context(), core.RunStart{Work: work}), core.RunEnd{Work: work})
	}
	m.want(0, active)
	m.want(labels, runs)
	if len(m.points(runs, overflow)) != 1 {
		t.Error("no overflow")
	}
}

// TestRunWithoutStart: an end whose start was not seen, as after a panic of another hook, does not count.
func TestRunWithoutStart(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	m.hooks.RunEnd(t.Context(), core.RunEnd{Work: order})
	m.want(0, active)
	m.want(0, runs)
	m.hooks.Incident(t.Context(), core.Incident{Work: order, Kind: core.IncidentUnguarded})
	m.want(1, incidents, incidentKind("unguarded"))
}

// TestRunSpan: beside the acquisition below the caller's span, and above the spans of the work.
func TestRunSpan(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	hooks, tracer := guard.HooksOf(seal.FactsOf(locks)), m.tracers.Tracer("test")
	ctx, request := tracer.Start(t.Context(), "request")
	attempt, err := locks.Once("secret").Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	start := core.RunStart{Work: order, Token: attempt.Token(), Attempt: attempt.Number()}
	run := hooks.RunStart(attempt.Context(), start)
	_, work := tracer.Start(run, "work")
	work.End()
	if _, err := locks.Mutex("secret").TryLock(run); err != nil {
		t.Fatal(err)
	}
	hooks.Incident(run, core.Incident{Work: order, Kind: core.IncidentUnrecorded})
	hooks.RunEnd(run, core.RunEnd{Work: order, Token: attempt.Token(), Attempt: 1, State: core.StateCompleted})
	hooks.Incident(run, core.Incident{Work: order, Kind: core.IncidentOverrun})
	if err := attempt.Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	request.End()

	span := m.ended("holdfast.run")[0]
	for _, sibling := range []sdk.ReadOnlySpan{span, m.ended("holdfast.begin")[0]} {
		if sibling.Parent().SpanID() != request.SpanContext().SpanID() {
			t.Errorf("%s is not below the request", sibling.Name())
		}
	}
	for _, child := range []sdk.ReadOnlySpan{m.ended("work")[0], m.ended("holdfast.acquire")[0]} {
		if child.Parent().SpanID() != span.SpanContext().SpanID() {
			t.Errorf("%s is not below the run", child.Name())
		}
	}
	set := attributesOf(span)
	if !contains(set, []attribute.KeyValue{
		place("http"), label("POST /orders"), outcome("succeeded"), state("completed"),
		attribute.Int64("holdfast.token", attempt.Token()), attribute.Int("holdfast.attempt", 1),
	}) || set.Len() != 6 || span.Status().Code != codes.Unset {
		t.Errorf("%v, %v", set.Encoded(attribute.DefaultEncoder()), span.Status())
	}
	wantEvent(t, span, "holdfast.incident", place("http"), incidentKind("unrecorded"))
	wantEvent(t, m.ended("request")[0], "holdfast.incident", incidentKind("overrun"))
}

// TestFailedRunSpan: how a run failed is the error of its span, without a text.
func TestFailedRunSpan(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	for _, end := range []core.RunEnd{{Err: errors.New("secret")}, {Panicked: true}} {
		m.hooks.RunEnd(m.hooks.RunStart(t.Context(), core.RunStart{Work: order}), end)
	}
	for i, want := range []string{"failed", "panicked"} {
		span := m.ended("holdfast.run")[i]
		if span.Status() != (sdk.Status{Code: codes.Error, Description: want}) || len(span.Events()) != 0 ||
			!contains(attributesOf(span), []attribute.KeyValue{outcome(want), attribute.String("error.type", want)}) {
			t.Errorf("%v, %v, %v", span.Status(), span.Attributes(), span.Events())
		}
	}
}

// TestSkipEvent: the caller's span says that its work was not run, and no span is made.
func TestSkipEvent(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	ctx, request := m.tracers.Tracer("test").Start(t.Context(), "request")
	m.hooks.NotRun(ctx, core.NotRun{Work: order, Reason: "lock-conflict", RetryAfter: time.Second, Attempt: 2})
	request.End()
	spans := m.spans.Ended()
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	wantEvent(t, spans[0], "holdfast.skip", place("http"), label("POST /orders"), reason("lock_conflict"),
		attribute.Float64("holdfast.retry_after", 1), attribute.Int("holdfast.attempt", 2))
}

// TestNestedRuns: each guard of a chain ends its own run.
func TestNestedRuns(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	inner := core.Work{Place: "http", Label: "inner"}
	first := m.hooks.RunStart(t.Context(), core.RunStart{Work: order})
	second := m.hooks.RunStart(first, core.RunStart{Work: inner})
	m.hooks.Incident(first, core.Incident{Work: order, Kind: core.IncidentLost})
	m.want(2, active)
	m.hooks.RunEnd(second, core.RunEnd{Work: inner})
	m.want(1, active, label("POST /orders"))
	m.hooks.RunEnd(context.WithoutCancel(first), core.RunEnd{Work: order})
	m.want(0, active)
	m.want(1, runs, label("inner"), outcome("succeeded"))
	m.want(1, runs, label("POST /orders"), outcome("lost"))
	spans := m.ended("holdfast.run")
	if spans[0].Parent().SpanID() != spans[1].SpanContext().SpanID() {
		t.Error("the inner run is not below the outer one")
	}
}

// TestRunsWithoutSpans: without spans the work keeps its caller's, which gets no events.
func TestRunsWithoutSpans(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	hooks, err := otellock.New(otellock.WithMeterProvider(m.meters), otellock.WithoutSpans())
	if err != nil {
		t.Fatal(err)
	}
	ctx, request := m.tracers.Tracer("test").Start(t.Context(), "request")
	run := hooks.RunStart(ctx, core.RunStart{Work: order})
	if trace.SpanFromContext(run) != request {
		t.Error("the work has another span")
	}
	hooks.Incident(run, core.Incident{Work: order, Kind: core.IncidentLost})
	hooks.NotRun(ctx, core.NotRun{Work: order, Reason: core.ReasonReplayed})
	hooks.RunEnd(run, core.RunEnd{Work: order})
	request.End()
	if spans := m.spans.Ended(); len(spans) != 1 || len(spans[0].Events()) != 0 {
		t.Errorf("%v", spans)
	}
	m.want(1, runs, outcome("lost"))
}

// TestRunsWithoutHooks: they cost no allocation.
func TestRunsWithoutHooks(t *testing.T) {
	locks, err := core.New(testkit.Start(t).Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	hooks, ctx := guard.HooksOf(seal.FactsOf(locks)), t.Context()
	if allocated := testing.AllocsPerRun(100, func() { report(ctx, hooks) }); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// report is what a guard reports of one run.
func report(ctx context.Context, hooks guard.Hooks) {
	run := hooks.RunStart(ctx, core.RunStart{Work: order, Token: 1, Attempt: 1, Waited: time.Millisecond})
	hooks.RunEnd(run, core.RunEnd{Work: order, Token: 1, Attempt: 1, State: core.StateCompleted, Took: time.Millisecond})
}

// wantEvent fails the test unless the span has one event, with these attributes.
func wantEvent(t *testing.T, span sdk.ReadOnlySpan, name string, with ...attribute.KeyValue) {
	t.Helper()
	events := span.Events()
	if len(events) != 1 || events[0].Name != name || !contains(attribute.NewSet(events[0].Attributes...), with) {
		t.Errorf("events of %s: %v", span.Name(), events)
	}
}
