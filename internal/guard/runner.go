package guard

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/seal"
)

// Runner runs work items that only [Run.Around] keeps from running: those of the leader of an election, for instance. Make it
// with [NewRunner]. It is safe for concurrent use.
type Runner struct{ engine }

// NewRunner returns a Runner with the hooks and the log of what has these facts. The place is that of [core.Work].
func NewRunner(place string, facts seal.Facts) *Runner {
	return &Runner{newEngine(place, Config{}, facts)}
}

// Do calls run.Call, and returns the outcome after that, and otherwise why the item did not run: an error of Around or
// Refuse, or the cause for which ctx has ended.
func (r *Runner) Do(ctx context.Context, ask Ask, run Run) (*Outcome, error) {
	return r.visit(ask, run).start(ctx, nil, nil, func() {})
}
