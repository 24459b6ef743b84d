package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLogLines: the source has each log line that docs/log-lines.md explains. Some functions add "holdfast: " themselves, and a
// long line may be joined of several literals.
func TestLogLines(t *testing.T) {
	t.Parallel()
	explained := regexp.MustCompile("(?m)^\\| `holdfast: ([^`]+)` \\|").FindAllStringSubmatch(readFile(t, "docs/log-lines.md"), -1)
	if len(explained) < 30 {
		t.Fatalf("found only %d log lines on the page", len(explained))
	}
	source := source(t, "core", "middleware", "cronlock", "gocronlock", "asynqlock", "msglock", "sqllock", "inspector", "internal/guard")
	source = regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(source, "")
	for _, line := range explained {
		if !strings.Contains(source, `"`+line[1]) && !strings.Contains(source, `"holdfast: `+line[1]) {
			t.Errorf("docs/log-lines.md explains %q, which is not logged", line[1])
		}
	}
}

// source returns the Go code in folders, without tests.
func source(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
