package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/lab/bench/election"
	"github.com/holdfast-go/holdfast/lab/permits"
)

// TestQuick: a short run fills every cell of every table.
func TestQuick(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	args := []string{
		"-quick", "-rounds", "1", "-resignations", "2", "-crashes", "1", "-lead-ttl", "2s",
		"-results", filepath.Join(t.TempDir(), "results.json"),
	}
	if err := run(t.Context(), args, &text, io.Discard); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---") {
			rows++
			if strings.Contains(line, "|  |") || strings.Contains(line, "NaN") {
				t.Errorf("a cell is empty: %s", line)
			}
		}
	}
	const heads, loads = 5, 2 + 3
	want := heads + loads + len(permits.Plays()) + len(election.All()) + len(election.Plays())
	if rows != want {
		t.Errorf("%d rows, want %d:\n%s", rows, want, &text)
	}
}
