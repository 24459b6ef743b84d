package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: each debit is made once, although Redis has lost its record.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, run,
		"payment: 201 paid, replayed: false",
		"payment, after Redis has lost its record: 201 paid, replayed: true",
		"task: <nil>",
		"task, after Redis has lost its record: <nil>",
		"message: <nil>",
		"message, after Redis has lost its record: <nil>",
		"balance: 3950 cents",
	)
}
