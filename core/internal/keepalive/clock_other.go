//go:build !linux

package keepalive

// SystemClock is the clock of the system: the portable one, because CLOCK_BOOTTIME exists on Linux only.
var SystemClock Clock = portableClock
