package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: a failure may be tried again, a success is recorded.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"failed, and may be tried again: the printer is out of paper",
		"written now, in attempt 2: report no. 7",
		"written before, recorded: report no. 7",
		"refused, completed: report no. 7",
	)
}
