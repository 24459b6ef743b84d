package core

import (
	"cmp"
	"context"
)

// then returns hooks that call those of h first, and those of next after them.
func (h Hooks) then(next Hooks) Hooks {
	return Hooks{
		AcquireStart: bothStarts(h.AcquireStart, next.AcquireStart),
		Wait:         both(h.Wait, next.Wait),
		AcquireEnd:   both(h.AcquireEnd, next.AcquireEnd),
		ReleaseStart: bothStarts(h.ReleaseStart, next.ReleaseStart),
		ReleaseEnd:   both(h.ReleaseEnd, next.ReleaseEnd),
		BeginStart:   bothStarts(h.BeginStart, next.BeginStart),
		BeginEnd:     both(h.BeginEnd, next.BeginEnd),
		AttemptEnd:   both(h.AttemptEnd, next.AttemptEnd),
		Renewed:      both(h.Renewed, next.Renewed),
		Lost:         both(h.Lost, next.Lost),
		ProofAsked:   both(h.ProofAsked, next.ProofAsked),
		RunStart:     bothStarts(h.RunStart, next.RunStart),
		RunEnd:       both(h.RunEnd, next.RunEnd),
		NotRun:       both(h.NotRun, next.NotRun),
		Incident:     both(h.Incident, next.Incident),
	}
}

// both returns a hook that calls two, of which each may be nil. The second is called even if the first panics. Why: a
// fault of the one must not make the counts of the other wrong.
func both[T any](first, second func(context.Context, T)) func(context.Context, T) {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, event T) {
		defer second(ctx, event)
		first(ctx, event)
	}
}

// bothStarts is both for hooks that return a context: the second gets that of the first.
func bothStarts[T any](first, second func(context.Context, T) context.Context) func(context.Context, T) context.Context {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, event T) context.Context {
		ctx = cmp.Or(first(ctx, event), ctx)
		return cmp.Or(second(ctx, event), ctx)
	}
}
