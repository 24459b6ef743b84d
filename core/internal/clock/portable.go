package clock

import "time"

// start is the zero point of the portable clock, as a wall-clock and as a monotonic reading.
var start = time.Now()

// portable returns the greater of two times since start: that of the wall clock, which continues in a suspend, and that of
// the monotonic clock, which cannot be set. If the wall clock is set forward, leases end too early. They never end too
// late, whatever is set.
func portable() Instant {
	now := time.Now()
	return Instant(max(now.Sub(start), now.Round(0).Sub(start.Round(0))))
}
