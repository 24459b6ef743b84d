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
	var first, second turn
	q.enter(&first, "k", ack{})
	q.enter(&second, "k", ack{})
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

// TestFailureOfReplicasStays: who wants fewer replicas than the first keeps its place, and its turn comes.
func TestFailureOfReplicasStays(t *testing.T) {
	t.Parallel()
	q := newQueue()
	var first, weaker, same turn
	q.enter(&first, "k", ack{replicas: 2})
	q.enter(&weaker, "k", ack{replicas: 1})
	q.enter(&same, "k", ack{replicas: 2})
	err := error(&NotReplicatedError{Wanted: 2})
	first.fail(err)
	first.leave()
	if closing := make(chan struct{}); same.wait(t.Context(), closing) != err || weaker.wait(t.Context(), closing) != nil {
		t.Error("the wrong ones were sent away")
	}
	weaker.fail(ErrUnavailable)
	if !q.empty("k") {
		t.Error("somebody is left")
	}
}
