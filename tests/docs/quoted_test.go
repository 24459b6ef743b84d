package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuotedTests: the tests on docs/testing.md are those of examples/testing, which run.
func TestQuotedTests(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(root, "examples/testing/*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	quoted := 0
	for _, p := range pages(t) {
		if p.Path != "docs/testing.md" {
			continue
		}
		blocks, _ := p.Split()
		for _, b := range blocks {
			if !strings.HasPrefix(b.Code, "func ") {
				continue
			}
			if quoted++; !strings.Contains(source.String(), b.Code) {
				t.Errorf("%s:%d: not in examples/testing", p.Path, b.Line)
			}
		}
	}
	if quoted < 10 {
		t.Errorf("found only %d tests", quoted)
	}
}
