package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What the text stands between on the page.
const (
	begin = "<!-- bench:begin -->"
	end   = "<!-- bench:end -->"
)

// Put replaces what stands between the markers of a page.
func Put(page, text string) (string, error) {
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the page needs the lines %s and %s", begin, end)
	}
	return before + begin + "\n\n" + text + "\n" + end + after, nil
}

// Write puts the text into a page and the pictures, by their names, beside it.
func Write(path, text string, pictures map[string]string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	changed, err := Put(string(page), text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	pictures[filepath.Base(path)] = changed
	for name, content := range pictures {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("page: %w", err)
		}
	}
	return nil
}
