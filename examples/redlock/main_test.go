package main

import (
	"strings"
	"testing"
)

// TestRun: the lock can be had from two servers of three, and not from one.
func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const want = `three servers:
  the report is written; a second writer is refused: true
one of them fails:
  the report is written; a second writer is refused: true
two of them fail:
  no majority, no lock: true
`
	if out.String() != want {
		t.Errorf("printed:\n%s\nwant:\n%s", out.String(), want)
	}
}
