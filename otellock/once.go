package otellock

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-go/holdfast/core"
)

func (t *telemetry) beginStart(ctx context.Context, start core.BeginStart) context.Context {
	return t.starts(ctx, core.ModeOnce, start.Key, false)
}

func (t *telemetry) beginEnd(ctx context.Context, end core.BeginEnd) {
	c := t.callOf(ctx)
	if c == nil {
		return
	}
	outcome := word(end.Outcome)
	if end.Outcome == core.OutcomeFailed {
		outcome = outcomeOf(end.Err, false)
	}
	t.onceAttempts.Add(c, 1, t.perOutcome.of(labels{value: outcome, family: c.family}).add...)
	c.ends(outcome, end.Contended, end.Waited, end.Err == nil)
	if c.span != nil {
		var more []attribute.KeyValue
		if end.Attempt > 0 {
			more = append(more, attemptKey.Int(end.Attempt))
		}
		c.endSpan(outcome, end.Contended, end.Asked, end.Token, more)
	}
}

// attemptEnd records the completion of an attempt, and the end of its lease unless that was lost before: see releaseEnd.
func (t *telemetry) attemptEnd(ctx context.Context, end core.AttemptEnd) {
	c := t.callOf(ctx)
	if c == nil {
		return
	}
	outcome := word(end.Outcome)
	t.onceEnds.Add(c, 1, t.perOutcome.of(labels{value: outcome, family: c.family}).add...)
	if !end.LeaseLost && c.leaseEnds(outcome, end.Held) && t.config.holdSpans {
		c.holdSpan(outcome, end.Token, end.Held)
	}
}

// proofAsked counts a question to a proof by its answer.
func (t *telemetry) proofAsked(ctx context.Context, asked core.ProofAsked) {
	per := labels{value: "absent"}
	switch {
	case asked.Err != nil:
		per.value = "undecided"
	case asked.Committed:
		per.value = "committed"
	}
	if c := t.callOf(ctx); c != nil {
		per.family = c.family
	}
	t.proofs.Add(ctx, 1, t.perOutcome.of(per).add...)
}
