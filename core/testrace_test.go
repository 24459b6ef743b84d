//go:build race

package core_test

// underRace tells that the race detector makes goroutines cost many times what they do.
const underRace = true
