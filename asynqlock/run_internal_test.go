package asynqlock

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// counted is a lease that counts how often it was abandoned.
type counted struct{ abandoned atomic.Int32 }

func (c *counted) Abandon() { c.abandoned.Add(1) }

// TestGraceOfARun: a lease is abandoned when the handler has not ended for the grace after the end of its task, not earlier, and
// not if it has ended at any time before, also while that time begins. A hook that panics does not end the process.
func TestGraceOfARun(t *testing.T) {
	t.Parallel()
	const grace = time.Minute
	for name, test := range map[string]struct {
		tell func(r *run, cancel func())
		want int
	}{
		"it goes on": {func(_ *run, cancel func()) { cancel() }, 1},
		"it ends within the grace": {func(r *run, cancel func()) {
			cancel()
			time.Sleep(grace - time.Nanosecond)
			r.end()
		}, 0},
		"it ends before its task": {func(r *run, cancel func()) { r.end(); cancel() }, 0},
		"both end at once":        {func(r *run, cancel func()) { cancel(); r.end(); r.outlived() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				overruns := make(chan core.Incident, 10)
				g := &guard{config: newConfig(oncePlace, []Option{WithZombieGrace(grace)})}
				g.reportTo(seal.Facts{Logger: slog.New(slog.DiscardHandler), Hooks: &core.Hooks{
					Incident: func(_ context.Context, i core.Incident) {
						overruns <- i
						panic("hook")
					},
				}})
				ctx, cancel := context.WithCancel(t.Context())
				var lease counted
				r := &run{visit: &visit{guard: g, ctx: ctx, hash: "key"}, lease: &lease, gone: func() {}}
				r.begin()
				test.tell(r, cancel)
				time.Sleep(grace - time.Nanosecond)
				synctest.Wait()
				if lease.abandoned.Load() != 0 {
					t.Error("abandoned within the grace")
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := int(lease.abandoned.Load()); n != test.want || len(overruns) != test.want {
					t.Errorf("abandoned %d times, reported %d times", n, len(overruns))
				}
				for range test.want {
					if i := <-overruns; i.Kind != core.IncidentOverrun || i.KeyHash != "key" || !errors.Is(i.Err, context.Canceled) {
						t.Errorf("%+v", i)
					}
				}
			})
		})
	}
}
