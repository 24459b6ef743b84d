package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: each receipt is sent once, and each duplicate acknowledged.
func TestRun(t *testing.T) {
	t.Parallel()
	out := example.Output(t, run)
	sent, acknowledged := strings.Count(out, "receipt sent"), strings.Count(out, "acknowledged")
	if strings.Contains(out, "order :") || strings.Contains(out, "order ,") {
		t.Errorf("a line does not name its order:\n%s", out)
	}
	if sent != orders || acknowledged != orders {
		t.Errorf("%d receipts, %d duplicates acknowledged, want %d each:\n%s", sent, acknowledged, orders, out)
	}
}
