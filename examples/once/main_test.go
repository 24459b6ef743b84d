package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: a failure may be tried again, a success is recorded.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"Do, call 1: failed, and may be tried again: the printer is out of paper",
		"Do, call 2: run, attempt 2: report no. 7",
		"Do, call 3: not run, the recorded result: report no. 7",
		"Begin, call 4: refused, completed: report no. 7",
	)
}
