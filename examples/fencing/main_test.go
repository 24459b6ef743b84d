package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: what the paused holder writes overwrites nothing.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"the paused holder has the smaller token, the next holder has the greater one",
		"the next holder writes: saved",
		"the paused holder writes: refused: a later holder has written",
		"in the database: second",
	)
}
