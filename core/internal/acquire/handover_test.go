package acquire

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestHandOverConditions: only the first waiter takes over, only from the chain of its list, and only if all is equal.
func TestHandOverConditions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(e *Environment, c *Chain, first *waiter, h *script.Hold)
		want   bool
	}{
		"handed over":       {func(*Environment, *Chain, *waiter, *script.Hold) {}, true},
		"time is over":      {func(e *Environment, c *Chain, _ *waiter, _ *script.Hold) { c.until = e.Now() }, false},
		"no tokens":         {func(_ *Environment, c *Chain, _ *waiter, _ *script.Hold) { c.left = 0 }, false},
		"another TTL":       {func(_ *Environment, _ *Chain, _ *waiter, h *script.Hold) { h.TTL++ }, false},
		"waiter not ready":  {func(_ *Environment, _ *Chain, first *waiter, _ *script.Hold) { first.setTakesOver(false) }, false},
		"waiter has left":   {func(_ *Environment, _ *Chain, first *waiter, _ *script.Hold) { first.leave() }, false},
		"chain has ended":   {func(e *Environment, c *Chain, _ *waiter, _ *script.Hold) { e.Lists.endChain(c) }, false},
		"client is closing": {func(e *Environment, _ *Chain, _ *waiter, _ *script.Hold) { e.Operations.BeginClose() }, false},
		"another chain of the list": {func(e *Environment, c *Chain, first *waiter, _ *script.Hold) {
			other := *c
			first.list.chain = &other
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &Environment{Lists: NewLists()}
			e.Operations, e.Now = keepalive.NewOperations(), func() keepalive.Instant { return keepalive.Instant(time.Minute) }
			h := &script.Hold{TTL: time.Minute}
			var holder, first, second waiter
			first.ttl = h.TTL
			for _, w := range []*waiter{&holder, &first, &second} {
				e.Lists.enter(w, "k", transport.Ack{})
			}
			c := &Chain{key: "k", token: 7, left: 1, until: e.Now().Add(time.Hour)}
			holder.leaveToChain(c, e.Now)
			first.setTakesOver(true)
			if keepalive.Closed(first.ready) {
				t.Fatal("the first was woken although the chain runs")
			}
			test.change(e, c, &first, h)
			if got := e.HandOver(c, h); got != test.want || (first.taken == h) != test.want {
				t.Fatalf("handed over: %t, %t, want %t", got, first.taken == h, test.want)
			}
			if test.want && (c.token != 8 || c.left != 0 || !keepalive.Closed(first.ready) || e.Lists.byLock["k"].first != &second) {
				t.Errorf("token %d, %d left", c.token, c.left)
			}
			if running := e.Lists.byLock["k"].chain; running != nil {
				e.Lists.endChain(running)
			}
			first.leave()
			if !keepalive.Closed(second.ready) {
				t.Error("the end of the chain did not wake the second")
			}
			second.leave()
			if !e.Lists.Empty("k") {
				t.Error("a list is left")
			}
		})
	}
}
