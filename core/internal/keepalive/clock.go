package keepalive

import "time"

// Clock returns the present instant. It must be safe for concurrent use. Tests replace it.
type Clock func() Instant

// NewClock returns the clock of a new client: the clock of the system, or bubbleClock if the client is made in a bubble
// of testing/synctest.
//
// Because timers and deadlines are virtual in a bubble. A lease that is measured by the clock of the system would never be due
// there.
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

// portableStart is the zero point of the portable clock, as a wall-clock and as a monotonic reading.
var portableStart = time.Now()

// portableClock returns the greater of two times since portableStart: by the wall clock, which continues in a suspend, and
// by the monotonic clock, which cannot be set. If the wall clock is set forward, leases end too early. They end too late only if it is
// set back and the host is suspended after that: then both readings lack the time of the suspend, or a part of it.
func portableClock() Instant {
	now := time.Now()
	return Instant(max(now.Sub(portableStart), now.Round(0).Sub(portableStart.Round(0))))
}
