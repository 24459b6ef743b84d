//go:build !linux

package clock

// System is the portable clock.
var System Clock = portable
