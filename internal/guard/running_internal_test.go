package guard

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

// counted is a grant that counts how often it was abandoned.
type counted struct {
	grant
	abandoned atomic.Int32
}

func (c *counted) Abandon() { c.abandoned.Add(1) }

// TestGraceOfARun: a lease is abandoned when the function has not ended for the grace after the end of its context, not earlier, and
// not if it has ended at any time before, also while that time begins. A hook that panics does not end the process.
func TestGraceOfARun(t *testing.T) {
	t.Parallel()
	const grace = time.Minute
	for name, test := range map[string]struct {
		tell func(r *running, cancel func())
		want int
	}{
		"it goes on": {func(_ *running, cancel func()) { cancel() }, 1},
		"it ends within the grace": {func(r *running, cancel func()) {
			cancel()
			time.Sleep(grace - time.Nanosecond)
			r.end()
		}, 0},
		"it ends before its context": {func(r *running, cancel func()) { r.end(); cancel() }, 0},
		"both end at once":           {func(r *running, cancel func()) { cancel(); r.end(); r.overrun() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				overruns := make(chan core.Incident, 10)
				e := newEngine("desk", Config{ZombieGrace: grace}, seal.Facts{Logger: slog.New(slog.DiscardHandler), Hooks: &core.Hooks{
					Incident: func(_ context.Context, i core.Incident) {
						overruns <- i
						panic("hook")
					},
				}})
				ctx, cancel := context.WithCancel(t.Context())
				var lease counted
				r := &running{visit: e.visit(Ask{Work: core.Work{KeyHash: "key"}}, Run{}), grant: &lease, ctx: ctx}
				r.calm = r.watch(ctx)
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
