package middleware

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// wantRetry checks when a guard sends a client back to a key whose lease has an hour left.
func wantRetry(t *testing.T, g *guard, key string, want time.Duration) {
	t.Helper()
	if got := g.retryAfter(key, time.Hour); got < want || got > want+want/4 {
		t.Errorf("%s: come back after %v, want %v", key, got, want)
	}
}

// inBubble runs a test of a guard in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, g *guard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(DefaultConfig(), slog.Default)
		test(t, &g)
	})
}

// TestRetryAfterGrows: who asks about a long run asks more and more seldom; about a new one soon again.
func TestRetryAfterGrows(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *guard) {
		wantRetry(t, g, "a", time.Second)
		for _, step := range []struct{ pass, want time.Duration }{
			{time.Second, time.Second},
			{time.Second, 2 * time.Second},
			{2 * time.Second, 4 * time.Second},
			{4 * time.Second, 8 * time.Second},
			{8 * time.Second, 10 * time.Second},
			{time.Minute, 10 * time.Second},
		} {
			time.Sleep(step.pass)
			wantRetry(t, g, "a", step.want)
		}
		wantRetry(t, g, "b", time.Second) // another key
		g.acquired(t.Context(), Acquired{KeyHash: "a"})
		wantRetry(t, g, "a", time.Second) // another run
		time.Sleep(contentionMemory + time.Second)
		wantRetry(t, g, "a", time.Second) // nobody has asked meanwhile
	})
}

// TestRetryAfterIsNeverBeyondTheLease: then the holder is over, whatever it was.
func TestRetryAfterIsNeverBeyondTheLease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *guard) {
		g.holds.add(time.Minute)
		for range 3 {
			if got := g.retryAfter("a", 2*time.Second); got != 2*time.Second {
				t.Errorf("come back after %v, want the 2s that the lease has left", got)
			}
			time.Sleep(20 * time.Second)
		}
	})
}

// TestRetryAfterOfFewRuns: little is known from them, but more than from a lease.
func TestRetryAfterOfFewRuns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *guard) {
		g.holds.add(20 * time.Millisecond)
		wantRetry(t, g, "quick", time.Second)
		for range 18 {
			g.holds.add(8 * time.Second)
		}
		wantRetry(t, g, "slow", 8*time.Second)
		for range rememberedHolds {
			g.holds.add(20 * time.Millisecond)
		}
		g.holds.add(time.Minute) // one of 64 is an exception
		wantRetry(t, g, "quick again", time.Second)
	})
}

// TestContentionIsBounded: keys that clients choose do not fill the memory.
func TestContentionIsBounded(t *testing.T) {
	t.Parallel()
	var c contention
	for i := range 3 * mostContended {
		c.refuse(fmt.Sprint(i))
	}
	if len(c.spans) > mostContended || int(c.size.Load()) != len(c.spans) {
		t.Errorf("%d keys are remembered, %d counted, at most %d wanted", len(c.spans), c.size.Load(), mostContended)
	}
}
