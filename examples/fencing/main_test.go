package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: what the paused holder writes overwrites nothing.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"the next holder has a greater token: true",
		"the next holder writes: saved",
		"the paused holder writes: refused: a later holder has written",
		"in the database: second",
	)
}
