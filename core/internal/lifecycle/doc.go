// Package lifecycle has what goroutines need to end in time: a count of the running operations of a client, pauses that
// can be interrupted, and signals that never block.
package lifecycle
