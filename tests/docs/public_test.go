package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamplesArePublic: readers of examples and pages can do what these do, without the internal packages of this module.
func TestExamplesArePublic(t *testing.T) {
	t.Parallel()
	const hidden = "holdfast-go/holdfast/internal"
	examples := 0
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err != nil || !strings.HasPrefix(name, "example") || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		examples++
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), hidden) {
			t.Errorf("%s uses an internal package", path)
		}
		return err
	})
	if err != nil || examples < 10 {
		t.Errorf("found %d files of examples, error %v", examples, err)
	}
	for _, p := range pages(t) {
		blocks, _ := p.Split()
		for _, b := range blocks {
			if b.Language == "go" && strings.Contains(b.Code, hidden) {
				t.Errorf("%s:%d uses an internal package", p.Path, b.Line)
			}
		}
	}
}
