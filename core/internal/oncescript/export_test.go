package oncescript

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// Enlist extends the membership of a running record, as RenewAll does, and waits for the answer.
func (s Strategy) Enlist(ctx context.Context, h *lockscript.Hold) error {
	c := enlistCommand(h)
	c.Done = nil
	return s.Exec.Run(ctx, c)
}
