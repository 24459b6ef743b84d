package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestCommands: CONTRIBUTING.md lists each target that "make help" shows, and no other.
func TestCommands(t *testing.T) {
	t.Parallel()
	makefile, page := readFile(t, "Makefile"), readFile(t, "CONTRIBUTING.md")
	targets := make(map[string]bool)
	for _, found := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(makefile, -1) {
		targets[found[1]] = true
	}
	delete(targets, "help")
	if len(targets) < 10 {
		t.Fatalf("found only %d targets", len(targets))
	}
	listed := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| (`make [^|]*) \\|").FindAllStringSubmatch(page, -1) {
		for _, found := range regexp.MustCompile("`make ([a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			listed[found[1]] = true
		}
	}
	for target := range targets {
		if !listed[target] {
			t.Errorf("CONTRIBUTING.md does not list make %s", target)
		}
	}
	for target := range listed {
		if !targets[target] {
			t.Errorf("CONTRIBUTING.md lists make %s, which is none", target)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
