package otellock

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
)

// errorTypeKey is an attribute of the conventions of OpenTelemetry.
const errorTypeKey = attribute.Key("error.type")

// startSpan starts the span of the acquisition.
func (c *call) startSpan() {
	name := "holdfast.acquire"
	if c.mode == core.ModeOnce {
		name = "holdfast.begin"
	}
	c.spanCtx, c.span = c.tracer.Start(c.Context, name)
	if c.span.IsRecording() {
		c.span.SetAttributes(c.identity()...)
	}
}

// identity returns the attributes that all spans of the call have.
func (c *call) identity() []attribute.KeyValue {
	attributes := withStrategy(labels{mode: c.mode})
	if c.family != "" {
		attributes = append(attributes, familyKey.String(c.family))
	}
	if c.config.names {
		attributes = append(attributes, nameKey.String(valid(c.name)))
	}
	return attributes
}

// waitEvent marks in the span when the wait began.
func (c *call) waitEvent(position int, retryAfter time.Duration) {
	if c.span == nil || !c.span.IsRecording() {
		return
	}
	var attributes []attribute.KeyValue
	if position > 0 {
		attributes = append(attributes, positionKey.Int(position))
	}
	if retryAfter > 0 {
		attributes = append(attributes, retryKey.Float64(retryAfter.Seconds()))
	}
	c.span.AddEvent("wait", trace.WithAttributes(attributes...))
}

// endSpan ends the span of the acquisition. No text of an error is put in: it has the name of the lock.
func (c *call) endSpan(outcome string, contended bool, requests int, token int64, more []attribute.KeyValue) {
	if c.span.IsRecording() {
		c.span.SetAttributes(outcomeKey.String(outcome), contendedKey.Bool(contended), requestsKey.Int(requests))
		c.span.SetAttributes(more...)
		if token != 0 {
			c.span.SetAttributes(tokenKey.Int64(token))
		}
		if isFailure(outcome) {
			c.span.SetAttributes(errorTypeKey.String(outcome))
			c.span.SetStatus(codes.Error, outcome)
		}
	}
	c.ended.Store(true)
	c.span.End()
}

// holdSpan makes the span of a lease that has ended, below the span of the caller at the time of the acquisition. It is
// made at the end, so no span is open while a lease is held.
func (c *call) holdSpan(end string, token int64, held time.Duration) {
	now := time.Now()
	span := c.startHoldSpan(end, token, now.Add(-held))
	span.End(trace.WithTimestamp(now))
}

// lostSpan is holdSpan for a lease that was lost.
func (c *call) lostSpan(cause string, token int64, held time.Duration) {
	now := time.Now()
	span := c.startHoldSpan(cause, token, now.Add(-held))
	span.SetAttributes(errorTypeKey.String("lease_lost"))
	span.SetStatus(codes.Error, "lease lost: "+cause)
	span.End(trace.WithTimestamp(now))
}

func (c *call) startHoldSpan(end string, token int64, granted time.Time) trace.Span {
	options := []trace.SpanStartOption{
		trace.WithTimestamp(granted), trace.WithAttributes(c.identity()...),
		trace.WithAttributes(endKey.String(end), tokenKey.Int64(token)),
	}
	if c.span != nil && c.span.SpanContext().IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: c.span.SpanContext()}))
	}
	_, span := c.tracer.Start(c, "holdfast.hold", options...)
	return span
}

// startSpan starts the span of a run as a child of the caller's span. So the acquisition, which comes before, is its sibling.
func (r *run) startSpan(start core.RunStart) {
	r.Context, r.span = r.tracer.Start(r.caller, "holdfast.run")
	if !r.span.IsRecording() {
		return
	}
	r.span.SetAttributes(withPlace(runLabels{place: r.place, label: r.label})...)
	if start.Token != 0 {
		r.span.SetAttributes(tokenKey.Int64(start.Token))
	}
	if start.Attempt > 0 {
		r.span.SetAttributes(attemptKey.Int(start.Attempt))
	}
}

// endSpan ends the span of a run. No text of an error is put in, nor the hash of the key.
func (r *run) endSpan(outcome string, end core.RunEnd) {
	if r.span.IsRecording() {
		r.span.SetAttributes(outcomeKey.String(outcome), stateAttribute(end.State))
		if outcome != succeeded {
			r.span.SetAttributes(errorTypeKey.String(outcome))
			r.span.SetStatus(codes.Error, outcome)
		}
	}
	r.span.End()
}

// skipEvent marks in the span of the caller that its work was not run.
func skipEvent(ctx context.Context, not core.NotRun, per runLabels) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attributes := append(withPlace(per), reasonKey.String(valid(per.value)))
	if not.Attempt > 0 {
		attributes = append(attributes, attemptKey.Int(not.Attempt))
	}
	if not.RetryAfter > 0 {
		attributes = append(attributes, retryKey.Float64(not.RetryAfter.Seconds()))
	}
	span.AddEvent("holdfast.skip", trace.WithAttributes(attributes...))
}

// incidentEvent marks an incident in the span of its run. Before and after the run, the caller's span gets it.
func incidentEvent(ctx context.Context, r *run, per runLabels) {
	span := trace.SpanFromContext(ctx)
	if r != nil {
		if span = r.span; r.ended.Load() {
			span = trace.SpanFromContext(r.caller)
		}
	}
	if span.IsRecording() {
		span.AddEvent("holdfast.incident", trace.WithAttributes(append(withPlace(per), kindKey.String(valid(per.value)))...))
	}
}
