package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: both replicas lead, one after the other, in rising terms.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"a replica leads; its term is greater than the last one: true",
		"a replica leads; its term is greater than the last one: true",
	)
}
