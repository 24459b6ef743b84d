package core

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// TestNoHooksCostNothing: without hooks nothing is allocated for them. Acquisitions and releases do not call runWithHooks and
// unlockWithHooks then.
func TestNoHooksCostNothing(t *testing.T) {
	e := newEngine(newClientConfig([]Option{WithInstance("")}), nil, drift)
	defer e.stop()
	ctx := context.Background()
	hold := script.Hold{Name: "name", Owner: "owner", TTL: time.Minute}
	strategy := script.Strategy(script.Mutex{})
	l := &Lease{engine: e, strategy: strategy, hold: hold}
	l.base.caller = ctx
	a := &acquisition{engine: e}
	a.Strategy, a.Hold = strategy, hold
	client := &Client{engine: e}
	attempt := &Attempt{once: &Once{client: client}, lease: l}
	allocated := testing.AllocsPerRun(100, func() {
		a.acquireEnds(ctx, 0, nil)
		a.Waiting(ctx, 1, time.Second)
		e.renewEnds(l, keepalive.Answer{})
		e.loses(l, errGone)
		a.beginEnds(ctx, 0, nil)
		attempt.ends(ctx, OutcomeCompleted, AttemptEnd{})
	})
	if allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}
