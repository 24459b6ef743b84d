package keepalive

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClockInABubble: a client that is made in a bubble of testing/synctest measures leases in virtual time.
func TestClockInABubble(t *testing.T) {
	t.Parallel()
	if inBubble() {
		t.Error("taken for a bubble outside of one")
	}
	synctest.Test(t, func(t *testing.T) {
		now := NewClock()
		before := now()
		time.Sleep(time.Hour)
		if passed := now().Sub(before); passed != time.Hour {
			t.Errorf("%v passed, want 1h", passed)
		}
	})
}

// TestClockOutsideOfABubble: a client of a process measures leases with a clock that continues in a suspend.
func TestClockOutsideOfABubble(t *testing.T) {
	t.Parallel()
	before := SystemClock()
	here := NewClock()()
	after := SystemClock()
	if here < before || here > after {
		t.Errorf("the clock of a client says %v, that of the system %v before and %v after it", here, before, after)
	}
}
