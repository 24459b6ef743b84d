package clock

import "time"

// start has the zero of the portable clock, on both of Go's clocks.
var start = time.Now()

// portable returns the later of the wall clock, which continues in a suspend, and the monotonic clock, which cannot be
// set. A lease then ends too early after the wall clock was set forward, but never too late.
func portable() Instant {
	now := time.Now()
	return Instant(max(now.Sub(start), now.Round(0).Sub(start.Round(0))))
}
