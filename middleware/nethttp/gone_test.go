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
		if got := engineCode(ctx, err); got != want {
			t.Errorf("cause %v: %s, want %s", cause, got, want)
		}
	}
}
