package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: two call, and the third one is refused until the limit is greater.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"ada calls the gateway, in slot 0",
		"bob calls the gateway, in slot 1",
		"eve is refused: two calls are running",
		"eve calls the gateway with a limit of three, in slot 2",
	)
}
