package httpguard

import (
	"testing"
	"testing/synctest"
	"time"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// TestWaitLeavesTimeForTheAnswer: a request waits until a second before the server stops writing, and not at all after that.
func TestWaitLeavesTimeForTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard{config: Config{Config: guards.Config{Wait: time.Minute}}, gate: newGate(10, 10)}
		for left, want := range map[time.Duration]time.Duration{
			2 * time.Second: time.Second,
			time.Second:     0,
			-time.Second:    0,
			time.Hour:       time.Minute,
		} {
			if got := g.wait("key", "owner", time.Now().Add(left)); got != want {
				t.Errorf("waits %v of the %v that the server writes, want %v", got, left, want)
			}
		}
		if got := g.wait("key", "owner", time.Time{}); got != time.Minute {
			t.Errorf("waits %v at a server without limit, want a minute", got)
		}
	})
}
