package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: readers do not exclude each other, and do not keep a writer waiting forever.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"two readers read at the same time",
		"a writer waits for them",
		"a reader that comes later is refused: true",
		"the writer writes",
		"readers read again",
	)
}
