package throttle

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wantEvent checks what a throttle says of the next event.
func wantEvent(t *testing.T, th *Throttle, kind string, seen int, within time.Duration) {
	t.Helper()
	if gotSeen, gotWithin := th.Event(kind); gotSeen != seen || gotWithin != within {
		t.Errorf("%s: seen %d within %v, want %d within %v", kind, gotSeen, gotWithin, seen, within)
	}
}

// TestThrottle: the first event of each kind is logged at once, the others once a minute, by their number.
func TestThrottle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var th Throttle
		wantEvent(t, &th, "outage", 1, 0)
		for range 1203 {
			time.Sleep(10 * time.Millisecond)
			wantEvent(t, &th, "outage", 0, 0)
		}
		wantEvent(t, &th, "key", 1, 0) // another kind does not wait for the first
		time.Sleep(time.Minute - 1203*10*time.Millisecond)
		wantEvent(t, &th, "outage", 1204, time.Minute)
		wantEvent(t, &th, "outage", 0, 0)
		time.Sleep(time.Hour)
		wantEvent(t, &th, "outage", 2, time.Hour) // what was left over is not lost
		time.Sleep(time.Hour)
		wantEvent(t, &th, "outage", 1, time.Hour)
	})
}

// TestThrottleIsBounded: kinds without end cost no memory without end, and still are logged.
func TestThrottleIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var th Throttle
		for i := range 10 * mostKinds {
			th.Event(fmt.Sprint("kind ", i))
		}
		if len(th.kinds) > mostKinds+1 {
			t.Errorf("%d kinds are remembered, want %d at most", len(th.kinds), mostKinds+1)
		}
		time.Sleep(logInterval)
		wantEvent(t, &th, "one more", 9*mostKinds, logInterval)
	})
}

// TestThrottleCountsAll: events at the same time are counted, each in one line.
func TestThrottleCountsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var th Throttle
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { th.Event("outage") })
		}
		all.Wait()
		time.Sleep(logInterval)
		wantEvent(t, &th, "outage", 100, logInterval)
	})
}
