package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

var (
	errBusy   = fmt.Errorf("busy: %w", core.ErrNotAcquired)
	errSilent = fmt.Errorf("silent: %w: %w", core.ErrUnavailable, core.ErrNotAcquired)
)

// answer is what Redis says to one call, after a time; nil is a grant.
type answer struct {
	after time.Duration
	err   error
}

// TestPatience: how often Redis is asked, for how long each call waits, and with what it ends.
func TestPatience(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		wait    time.Duration
		open    bool
		answers []answer
		waits   []time.Duration
		want    error
	}{
		"granted":                       {2 * ms, true, []answer{{4 * ms, nil}}, []time.Duration{0}, nil},
		"busy, below the round trip":    {2 * ms, true, []answer{{4 * ms, errBusy}}, []time.Duration{0}, errBusy},
		"busy, then the wait too short": {6 * ms, true, []answer{{4 * ms, errBusy}, {2 * ms, errSilent}}, []time.Duration{0, 2 * ms}, errBusy},
		"no time for a second call":     {4*ms + 1, true, []answer{{4 * ms, errBusy}}, []time.Duration{0}, errBusy},
		"busy, then granted":            {100 * ms, false, []answer{{4 * ms, errBusy}, {9 * ms, nil}}, []time.Duration{0, 96 * ms}, nil},
		"busy, then silent":             {10 * time.Second, true, []answer{{0, errBusy}, {0, errSilent}}, []time.Duration{0, 10 * time.Second}, errBusy},
		"slower than Ask":               {3 * time.Second, true, []answer{{2500 * ms, errBusy}, {0, errSilent}}, []time.Duration{0, 500 * ms}, errBusy},
		"slower than AskTimeout":        {time.Hour, true, []answer{{5001 * ms, errBusy}}, []time.Duration{0}, errSilent},
		"silent for the whole wait":     {time.Second, true, []answer{{time.Hour, errSilent}}, []time.Duration{0}, errSilent},
		"silent, with a short wait":     {100 * ms, true, []answer{{0, errSilent}}, []time.Duration{0}, errSilent},
		"silent for too long":           {100 * ms, true, []answer{{time.Hour, errSilent}}, []time.Duration{0}, errSilent},
		"restarted":                     {2 * time.Second, true, []answer{{0, errSilent}, {0, errSilent}, {0, nil}}, []time.Duration{0, 0, 0}, nil},
		"restarted, then busy":          {2 * time.Second, true, []answer{{0, errSilent}, {0, errBusy}, {0, errSilent}}, []time.Duration{0, 0, 1900 * ms}, errBusy},
		"gone for the whole wait":       {300 * ms, true, []answer{{0, errSilent}, {0, errSilent}, {0, errSilent}}, []time.Duration{0, 0, 0}, errSilent},
		"one call that waits":           {10 * time.Second, false, []answer{{0, errSilent}}, []time.Duration{10 * time.Second}, errSilent},
		"refused":                       {100 * ms, true, []answer{{0, core.ErrPermission}}, []time.Duration{0}, core.ErrPermission},
		"busy, then refused":            {100 * ms, true, []answer{{0, errBusy}, {0, core.ErrPermission}}, []time.Duration{0, 100 * ms}, core.ErrPermission},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var waits []time.Duration
				p := Patience{Wait: test.wait, Ask: time.Second, FailOpen: test.open}
				err := p.Begin(t.Context(), func(ctx context.Context, wait time.Duration) error {
					a := test.answers[len(waits)]
					waits = append(waits, wait)
					select {
					case <-time.After(a.after):
						return a.err
					case <-ctx.Done():
						return errSilent
					}
				})
				if err != test.want || !slices.Equal(waits, test.waits) {
					t.Errorf("%v after waits of %v, want %v after %v", err, waits, test.want, test.waits)
				}
			})
		})
	}
}

// TestPatienceOfAnEndedContext: Redis is not asked again. The error says how ctx has ended, and that the lock was busy,
// though the last call was not answered: a deadline makes no
func TestPatienceOfAnEndedContext(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			const deadline = time.Minute
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			if cause == context.Canceled {
				time.AfterFunc(deadline/2, cancel)
			}
			calls := 0
			p := Patience{Wait: time.Hour, Ask: time.Second, FailOpen: true}
			err := p.Begin(ctx, func(ctx context.Context, _ time.Duration) error {
				if calls++; calls == 1 {
					return errBusy
				}
				<-ctx.Done()
				return fmt.Errorf("%w: %w", errSilent, ctx.Err())
			})
			if !errors.Is(err, cause) || !Busy(err) || IsOutage(err) || calls != 2 {
				t.Errorf("%v after %d calls", err, calls)
			}
		})
	}
}
