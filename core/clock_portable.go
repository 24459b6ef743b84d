package core

import "time"

// start has the zero of the portable clock, on both of Go's clocks.
var start = time.Now()

// portableClock reads the wall clock, which goes on in a suspend, and the monotonic clock, which nobody sets,
// and believes whichever is further: a lease then ends too early after the wall clock was put forward, but
// never too late.
func portableClock() instant {
	now := time.Now()
	return instant(max(now.Sub(start), now.Round(0).Sub(start.Round(0))))
}
