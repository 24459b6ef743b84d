//go:build !linux && !holdfast_simulation

package core

var systemClock clock = portableClock
