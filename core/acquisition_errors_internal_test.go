package core

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestReasonOutlivesTheWait: what Redis could not be asked for is told also if the wait ends during another try.
func TestReasonOutlivesTheWait(t *testing.T) {
	t.Parallel()
	r := &acquisition{keeper: &keeper{operations: lifecycle.New(), now: clock.System}, lastErr: transport.ErrNotAnswered, outageErr: io.EOF}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.timeUpError(ctx)
	for _, want := range []error{ErrNotAcquired, ErrUnavailable, context.Canceled, io.EOF} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
}

// TestNextLookIsAfterTheHoldersTime: whoever knows when the lock expires looks right after.
func TestNextLookIsAfterTheHoldersTime(t *testing.T) {
	t.Parallel()
	r := &acquisition{WaitState: lockscript.WaitState{HolderTTL: 50 * time.Millisecond}}
	for _, limit := range []time.Duration{unsubscribedPollInterval, 2 * time.Second} {
		if next := r.nextPoll(limit); next <= r.HolderTTL || next > r.HolderTTL+5*time.Millisecond {
			t.Errorf("looks again after %v, the holder has %v", next, r.HolderTTL)
		}
	}
}
