package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: no deposit overwrites another one.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"three clients of this program stand for three processes",
		"process 1 holds the lock; TryDo of process 2 is refused",
		"30 deposits of 10 from three processes, one at a time: the balance is 300",
	)
}
