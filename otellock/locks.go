package otellock

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-go/holdfast/core"
)

func (t *telemetry) acquireStart(ctx context.Context, start core.AcquireStart) context.Context {
	return t.starts(ctx, start.Mode, start.Name, start.Try)
}

func (t *telemetry) wait(ctx context.Context, wait core.Wait) {
	if c := t.callOf(ctx); c != nil {
		c.waits(wait.Position, wait.RetryAfter)
	}
}

func (t *telemetry) acquireEnd(ctx context.Context, end core.AcquireEnd) {
	c := t.callOf(ctx)
	if c == nil {
		return
	}
	outcome := outcomeOf(end.Err, c.try)
	c.permits = c.permitsOf(end)
	c.ends(outcome, end.Contended, end.Waited, end.Err == nil)
	if c.span == nil {
		return
	}
	var more []attribute.KeyValue
	if end.Position > 0 {
		more = append(more, positionKey.Int(end.Position))
	}
	if end.Permits > 0 {
		more = append(more, permitsKey.Int(end.Permits))
	}
	c.endSpan(outcome, end.Contended, end.Asked, end.Token, more)
}

// releaseEnd records the end of a lease that was held until Unlock. If it was lost before, that is for the hook Lost, which
// may be called a moment later.
func (t *telemetry) releaseEnd(ctx context.Context, end core.ReleaseEnd) {
	how := released
	switch {
	case errors.Is(end.Err, core.ErrNotHeld):
		return
	case end.Err != nil:
		how = unconfirmed
	}
	if c := t.callOf(ctx); c != nil && c.leaseEnds(how, end.Held) && t.config.holdSpans {
		c.holdSpan(how, end.Token, end.Held)
	}
}

func (t *telemetry) lost(ctx context.Context, lost core.Lost) {
	c := t.callOf(ctx)
	if c == nil {
		return
	}
	cause := word(lost.Reason)
	t.leasesLost.Add(c, 1, t.perCause.of(labels{mode: lost.Mode, value: cause, family: c.family}).add...)
	if c.leaseEnds(cause, lost.Held) && t.config.spans {
		c.lostSpan(cause, lost.Token, lost.Held)
	}
}

func (t *telemetry) renewed(ctx context.Context, renewed core.Renewed) {
	c := t.callOf(ctx)
	if c == nil {
		return
	}
	per := labels{mode: renewed.Mode, family: c.family, value: renewalOutcome(renewed.Err)}
	t.renewals.Add(c, 1, t.perRenewal.of(per).add...)
	if renewed.Err == nil {
		per.value = ""
		t.renewalMargin.Record(c, renewed.Left.Seconds(), t.perStrategy.of(per).record...)
		t.renewalUse.Record(c, used(renewed), t.perStrategy.of(per).record...)
	}
}

// used returns the part of the TTL that had passed when the renewal was answered.
func used(r core.Renewed) float64 { return max(0, 1-r.Left.Seconds()/r.TTL.Seconds()) }
