package otellock_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/otellock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// attributesOf returns the attributes of a span as a set.
func attributesOf(span sdk.ReadOnlySpan) attribute.Set { return attribute.NewSet(span.Attributes()...) }

// TestAcquireSpan: below the caller's span, with the wait as an event, and over when Lock returns.
func TestAcquireSpan(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	held := mustLock(t, locks.Fair("secret"))
	ctx, parent := m.tracers.Tracer("test").Start(t.Context(), "request")
	waiting := m.waits(ctx, locks.Fair("secret"))
	unlock(t, held)
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	spans := m.ended("holdfast.acquire")
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	span := spans[1]
	if span.Parent().SpanID() != parent.SpanContext().SpanID() {
		t.Error("not below the caller's span")
	}
	if events := span.Events(); len(events) != 1 || events[0].Name != "wait" {
		t.Errorf("events %v", events)
	}
	set := attributesOf(span)
	if !contains(set, []attribute.KeyValue{strategy(core.ModeFair), outcome("acquired"), contended(true)}) {
		t.Errorf("attributes %v", set.Encoded(attribute.DefaultEncoder()))
	}
	if token, _ := set.Value("holdfast.token"); token.AsInt64() <= held.Token() {
		t.Errorf("token %v after %d", token.Emit(), held.Token())
	}
	if set.HasValue("holdfast.name") {
		t.Error("the span has the name of the lock")
	}
	if len(m.ended("holdfast.hold")) != 0 {
		t.Error("a span of a lease that was not lost")
	}
}

// TestSpanOfWork: commands to Redis see the span of the acquisition, and the work sees the span of the caller.
func TestSpanOfWork(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	var during trace.SpanContext
	seen := core.Hooks{AcquireStart: func(ctx context.Context, _ core.AcquireStart) context.Context {
		during = trace.SpanContextFromContext(ctx)
		return ctx
	}}
	locks := m.client(testkit.Start(t).Client(), core.WithHooks(seen))
	ctx, parent := m.tracers.Tracer("test").Start(t.Context(), "request")
	lease, err := locks.Mutex("a").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock(t, lease)
	if acquire := m.ended("holdfast.acquire")[0]; during.SpanID() != acquire.SpanContext().SpanID() {
		t.Error("the call does not have the span of the acquisition")
	}
	if work := trace.SpanFromContext(lease.Context()); work != parent {
		t.Errorf("the work has the span %v", work.SpanContext())
	}
}

// TestLostSpan: a lost lease has a span with its times, an error and a link, though spans of leases are off.
func TestLostSpan(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t, otellock.WithNames(), otellock.WithFamily(otellock.Prefix(":")))
	locks := m.client(testkit.Start(t).Client())
	ctx, parent := m.tracers.Tracer("test").Start(t.Context(), "request")
	lease, err := locks.Mutex("order:42").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	parent.End()
	time.Sleep(time.Millisecond) // so that the hold has a length
	lease.Abandon()
	testkit.Eventually(t, within, "the span", func() bool { return len(m.ended("holdfast.hold")) == 1 })
	span, acquire := m.ended("holdfast.hold")[0], m.ended("holdfast.acquire")[0]
	if span.Status().Code != codes.Error || span.Parent().SpanID() != parent.SpanContext().SpanID() {
		t.Errorf("status %v, parent %v", span.Status(), span.Parent())
	}
	if links := span.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != acquire.SpanContext().SpanID() {
		t.Errorf("links %v", links)
	}
	if held := span.EndTime().Sub(span.StartTime()); held < time.Millisecond {
		t.Errorf("held for %v", held)
	}
	if !contains(attributesOf(span), []attribute.KeyValue{
		named("order:42"), family("order"), end("abandoned"), attribute.Int64("holdfast.token", lease.Token()),
	}) {
		t.Errorf("attributes %v", span.Attributes())
	}
}

// TestHoldSpans: with the option each lease and each attempt has one.
func TestHoldSpans(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t, otellock.WithHoldSpans())
	locks := m.client(testkit.Start(t).Client())
	unlock(t, mustLock(t, locks.Mutex("a")))
	if err := mustBegin(t, locks.Once("a")).Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	spans := m.ended("holdfast.hold")
	if len(spans) != 2 || len(m.ended("holdfast.begin")) != 1 {
		t.Fatalf("%d spans of leases", len(spans))
	}
	for i, how := range []string{"released", "completed"} {
		if !contains(attributesOf(spans[i]), []attribute.KeyValue{end(how)}) || spans[i].Status().Code != codes.Unset {
			t.Errorf("%v, %v", spans[i].Attributes(), spans[i].Status())
		}
	}
}

// TestFailedSpan: an outage is an error of the span, a lock that is held is none.
func TestFailedSpan(t *testing.T) {
	t.Parallel()
	m, server := newTelemetry(t), testkit.Start(t)
	locks := m.client(server.Client())
	lease := mustLock(t, locks.Mutex("a"))
	_, _ = locks.Mutex("a").TryLock(t.Context())
	server.Kill()
	_, _ = locks.Mutex("a").TryLock(t.Context())
	spans := m.ended("holdfast.acquire")
	if refused := spans[1].Status().Code; refused != codes.Unset {
		t.Errorf("a refusal has the status %v", refused)
	}
	if outage := spans[2].Status(); outage.Code != codes.Error || outage.Description != "unavailable" {
		t.Errorf("an outage has the status %v", outage)
	}
	lease.Abandon()
}

// TestExemplars: durations lead to the trace in which they were measured.
func TestExemplars(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	ctx, parent := m.tracers.Tracer("test").Start(t.Context(), "request")
	if err := m.client(testkit.Start(t).Client()).Mutex("a").Do(ctx, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	trace := parent.SpanContext().TraceID()
	for _, name := range []string{acquisitions, "holdfast.hold.duration"} {
		points := m.points(name)
		if len(points) != 1 || len(points[0].exemplars) != 1 || string(points[0].exemplars[0].TraceID) != string(trace[:]) {
			t.Errorf("%s: %+v, want an exemplar of %v", name, points, trace)
		}
	}
}
