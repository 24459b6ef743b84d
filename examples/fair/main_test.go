package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: the waiters print in the order of their arrival.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"four clients of this program stand for four processes; the first one holds the lock",
		"ada waits, position 1",
		"bob waits, position 2",
		"eve waits, position 3",
		"ada prints",
		"bob prints",
		"eve prints",
	)
}
