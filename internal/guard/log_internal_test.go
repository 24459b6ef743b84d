package guard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// TestCallerLeft: a caller that leaves does not hide that Redis is silent, and one that leaves soon does not pass for an
// outage.
func TestCallerLeft(t *testing.T) {
	t.Parallel()
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		ctx, cancel := context.WithCancel(t.Context())
		if end == context.DeadlineExceeded {
			ctx, cancel = context.WithTimeout(t.Context(), -1)
		}
		cancel()
		silent := fmt.Errorf("%w: %w", core.ErrUnavailable, end)
		for _, test := range []struct {
			err     error
			silence time.Duration
			want    bool
		}{
			{silent, shortestSilence, false},
			{silent, shortestSilence - 1, true},
			{errors.Join(core.ErrUnavailable, errors.New("connection refused")), 0, false},
		} {
			if got := callerLeft(ctx, test.err, test.silence); got != test.want {
				t.Errorf("%v after %v: %v", test.err, test.silence, got)
			}
			if callerLeft(t.Context(), test.err, test.silence) {
				t.Errorf("%v: the caller has not left", test.err)
			}
		}
	}
}
