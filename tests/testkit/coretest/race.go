//go:build race

package coretest

// UnderRace tells that the race detector makes goroutines cost many times what they do.
const UnderRace = true
