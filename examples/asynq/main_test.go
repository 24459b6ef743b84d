package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is written by several servers at once.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// TestRun: each receipt is sent once, and each duplicate acknowledged.
func TestRun(t *testing.T) {
	t.Parallel()
	var out output
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run(ctx, &out, ""); err != nil {
		t.Fatal(err)
	}
	text := out.text.String()
	sent, acknowledged := strings.Count(text, "receipt sent"), strings.Count(text, "acknowledged")
	if sent != orders || acknowledged != orders {
		t.Errorf("%d receipts, %d duplicates acknowledged, want %d each:\n%s", sent, acknowledged, orders, text)
	}
}
