// Package cronworker is a replica that runs jobs of cronlock, for tests with real processes. It records what becomes of
// every tick in a Redis of the test, which nobody breaks.
package cronworker
