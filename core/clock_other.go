//go:build !linux

package core

var systemClock clock = portableClock
