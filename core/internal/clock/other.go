//go:build !linux

package clock

// System is the clock of the system: the portable one, because CLOCK_BOOTTIME exists on Linux only.
var System Clock = portable
