package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: a client that tries again gets the first answer, and pays once.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run, example.PaymentAnswers...)
}
