package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is written by several replicas at once.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// TestRun: no tick greets twice, and every greeting is in the history.
func TestRun(t *testing.T) {
	t.Parallel()
	var out output
	if err := run(context.Background(), &out, "", 2500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	greetings, report, _ := strings.Cut(out.text.String(), "\n\n")
	ticks := map[string]bool{}
	for line := range strings.Lines(greetings) {
		tick, _, _ := strings.Cut(line, " ")
		if ticks[tick] {
			t.Errorf("tick %s twice", tick)
		}
		ticks[tick] = true
	}
	if n := strings.Count(report, "success"); n == 0 || n != len(ticks) {
		t.Errorf("%d greetings and %d in the history:\n%s", len(ticks), n, out.text.String())
	}
}
