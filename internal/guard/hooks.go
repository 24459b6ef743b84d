package guard

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Hooks are the hooks of the client whose facts these are. They may be called whether they are set or not.
type Hooks struct{ hooks *core.Hooks }

// HooksOf returns the hooks of a client, or of the client of a lock.
func HooksOf(facts seal.Facts) Hooks {
	hooks, ok := facts.Hooks.(*core.Hooks)
	if !ok {
		hooks = new(core.Hooks)
	}
	return Hooks{hooks}
}

// RunStart returns the context for the run.
func (h Hooks) RunStart(ctx context.Context, start core.RunStart) context.Context {
	if h.hooks.RunStart == nil {
		return ctx
	}
	if own := h.hooks.RunStart(ctx, start); own != nil {
		return own
	}
	return ctx
}

// RunEnd reports the end of a run.
func (h Hooks) RunEnd(ctx context.Context, end core.RunEnd) {
	if h.hooks.RunEnd != nil {
		h.hooks.RunEnd(ctx, end)
	}
}

// NotRun reports what is not run.
func (h Hooks) NotRun(ctx context.Context, not core.NotRun) {
	if h.hooks.NotRun != nil {
		h.hooks.NotRun(ctx, not)
	}
}

// Incident reports what went wrong with a run.
func (h Hooks) Incident(ctx context.Context, incident core.Incident) {
	if h.hooks.Incident != nil {
		h.hooks.Incident(ctx, incident)
	}
}
