package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: transfers in all directions neither deadlock nor lose money.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"after 60 transfers ada has 100 bob 100 eve 100",
		"a transfer while ada's account is locked is refused: true",
		"bob's account is free",
	)
}
