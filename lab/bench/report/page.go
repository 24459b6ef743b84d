package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The parts of the page that are written here. Each stands between two comments with its name.
const (
	SummaryPart = "bench:summary"
	TextPart    = "bench"
	ServerPart  = "bench:server"
)

// Put replaces a part of a page.
func Put(page, part, text string) (string, error) {
	begin, end := "<!-- "+part+":begin -->", "<!-- "+part+":end -->"
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the page needs the lines %s and %s", begin, end)
	}
	return before + begin + "\n\n" + text + "\n" + end + after, nil
}

// Write puts the parts into a page and the pictures, by their names, beside it.
func Write(path string, parts, pictures map[string]string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	changed := string(page)
	for part, text := range parts {
		if changed, err = Put(changed, part, text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	pictures[filepath.Base(path)] = changed
	for name, content := range pictures {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("page: %w", err)
		}
	}
	return nil
}
