package httplock

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
)

// TestLostLeaseAroundIsNoLeavingClient: a guard around this one has lost its lease while the client waits for an answer.
func TestLostLeaseAroundIsNoLeavingClient(t *testing.T) {
	t.Parallel()
	for want, cause := range map[string]error{CodeClientGone: nil, CodeLockUnavailable: core.ErrLeaseLost} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		err := errors.Join(core.ErrUnavailable, ctx.Err())
		if exclusive, once := lockCode(ctx, err), onceCode(ctx, err); exclusive != want || once != want {
			t.Errorf("cause %v: %s and %s, want %s", cause, exclusive, once, want)
		}
	}
}
