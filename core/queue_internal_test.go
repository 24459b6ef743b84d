package core

import (
	"context"
	"testing"
	"time"
)

// TestClosingEndsTheLine: whoever waits for a turn does not outlast Close.
func TestClosingEndsTheLine(t *testing.T) {
	t.Parallel()
	q := newQueue()
	first, second := q.enter("k"), q.enter("k")
	closing := make(chan struct{})
	close(closing)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := second.wait(ctx, closing); ctx.Err() != nil {
		t.Errorf("waited until %v", err)
	}
	second.leave()
	first.leave()
}

// TestNextLookIsAfterTheHoldersTime: whoever knows when the lock expires looks right after.
func TestNextLookIsAfterTheHoldersTime(t *testing.T) {
	t.Parallel()
	r := &request{standing: standing{left: 50 * time.Millisecond}}
	for _, limit := range []time.Duration{pollUnheard, pollHeard} {
		if next := r.nextLook(limit); next <= r.left || next > r.left+5*time.Millisecond {
			t.Errorf("looks again after %v, the holder has %v", next, r.left)
		}
	}
}
