//go:build !linux

package core

func systemClock() instant { return portableClock() }
