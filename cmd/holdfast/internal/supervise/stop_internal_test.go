//go:build linux || darwin

package supervise

import (
	"testing"
	"time"
)

// TestStops: TERM comes before the end of the lease, KILL after the grace whatever becomes of the lease, and a lease that
// is renewed in time has no effect.
func TestStops(t *testing.T) {
	t.Parallel()
	lease := func(end time.Duration) stop {
		return stop{LeaseExpires, instant(end - 10), instant(end - 1)}
	}
	s := stops{killBefore: 10}
	check := func(at instant, l stop, term, kill bool) {
		t.Helper()
		if gotTerm, gotKill, reason := s.due(l, at); gotTerm != term || gotKill != kill {
			t.Errorf("at %d: TERM %v, KILL %v, %q; want %v, %v", at, gotTerm, gotKill, reason, term, kill)
		}
	}
	check(20, lease(100), false, false)
	check(90, lease(130), false, false) // renewed
	check(120, lease(130), true, false)
	check(121, lease(130), false, false) // TERM once
	check(129, lease(200), false, false) // renewed too late
	check(130, lease(200), false, true)  // the grace is over
	check(131, lease(200), false, true)
	s = stops{killBefore: 10}
	s.add(HeldTooLong, 50)
	if next := s.next(lease(100), 20); next != 50 {
		t.Errorf("next at %d", next)
	}
	check(50, lease(100), true, false)
	check(60, lease(100), false, true)
	s = stops{killBefore: 10}
	check(200, lease(100), false, true) // after a pause: no TERM first
}
