package keepalive

import "time"

// portableStart is the zero point of the portable clock, as a wall-clock and as a monotonic reading.
var portableStart = time.Now()

// portableClock returns the greater of two times since portableStart: that of the wall clock, which continues in a suspend, and that of
// the monotonic clock, which cannot be set. If the wall clock is set forward, leases end too early. They never end too
// late, whatever is set.
func portableClock() Instant {
	now := time.Now()
	return Instant(max(now.Sub(portableStart), now.Round(0).Sub(portableStart.Round(0))))
}
