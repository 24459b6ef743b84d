package keepalive

import "time"

// NewClock returns the clock of a new client: the clock of the system, or bubbleClock if the client is made in a bubble
// of testing/synctest.
//
// Why: timers and deadlines are virtual in a bubble. A lease that is measured by the clock of the system would never be
// due there.
func NewClock() Clock {
	if inBubble() {
		return bubbleClock
	}
	return SystemClock
}

// bubbleClock reads the clock of package time, which is virtual in a bubble of testing/synctest.
func bubbleClock() Instant { return Instant(time.Now().UnixNano()) }

// inBubble returns true if the caller runs in a bubble of testing/synctest. That package has no function for it, but its
// virtual time.Now is the only one without a monotonic reading.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0) // Round(0) removes a monotonic reading
}
