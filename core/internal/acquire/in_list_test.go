package acquire

import (
	"testing"
	"time"
)

// TestNextLookIsAfterTheHoldersTime: a waiter that knows when the lock expires asks right aftea.
func TestNextLookIsAfterTheHoldersTime(t *testing.T) {
	t.Parallel()
	a := new(Acquisition)
	a.HolderTTL = 50 * time.Millisecond
	for _, limit := range []time.Duration{unsubscribedPollInterval, 2 * time.Second} {
		if next := a.nextPoll(limit); next <= a.HolderTTL || next > a.HolderTTL+5*time.Millisecond {
			t.Errorf("looks again after %v, the holder has %v", next, a.HolderTTL)
		}
	}
}
