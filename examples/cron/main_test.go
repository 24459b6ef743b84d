package main

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// TestRun: no tick greets twice, every greeting is in the history, and the other replica skips.
func TestRun(t *testing.T) {
	t.Parallel()
	out := example.Output(t, lasting(2500*time.Millisecond))
	greetings, report, _ := strings.Cut(out, "\n\n")
	ticks := map[string]bool{}
	skipped := 0
	for line := range strings.Lines(greetings) {
		if strings.Contains(line, "skips") {
			skipped += strings.Count(line, "the other replica has the tick")
			continue
		}
		tick, _, _ := strings.Cut(line, " ")
		if ticks[tick] {
			t.Errorf("tick %s twice", tick)
		}
		ticks[tick] = true
	}
	if skipped == 0 {
		t.Errorf("no replica has skipped:\n%s", out)
	}
	if n := strings.Count(report, "success"); n == 0 || n != len(ticks) {
		t.Errorf("%d greetings and %d in the history:\n%s", len(ticks), n, out)
	}
}
