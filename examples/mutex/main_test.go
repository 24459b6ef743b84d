package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: no deposit overwrites another one.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"a second process is refused: true",
		"30 deposits of 10 make 300",
	)
}
