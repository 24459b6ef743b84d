package core

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestReasonOutlivesTheWait: what Redis could not be asked for is told also if the wait ends during another try.
func TestReasonOutlivesTheWait(t *testing.T) {
	t.Parallel()
	a := &acquisition{engine: &engine{operations: keepalive.NewOperations()}}
	a.Env = &acquire.Environment{Background: transport.Background{Now: keepalive.SystemClock}}
	a.LastErr, a.Outage = transport.ErrNotAnswered, io.EOF
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := a.timeUpError(ctx)
	for _, want := range []error{ErrNotAcquired, ErrUnavailable, context.Canceled, io.EOF} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
}
