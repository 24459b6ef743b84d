package middleware_test

import (
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// adapters are the packages whose directories have another name: a snippet without the import does not tell what it is
// about, and an import without the name does not look as if it were meant.
var adapters = map[string]string{
	"httplock": `httplock "github.com/holdfast-go/holdfast/middleware/nethttp"`,
	"ginlock":  `ginlock "github.com/holdfast-go/holdfast/middleware/gin"`,
}

// unimported returns which adapters a snippet calls without showing the import.
func unimported(snippet string) []string {
	var names []string
	for name, spec := range adapters {
		if regexp.MustCompile(`\b`+name+`\.[A-Z]\w*\(`).MatchString(snippet) && !strings.Contains(snippet, spec) {
			names = append(names, name)
		}
	}
	return names
}

// snippetsOf returns the Go code in a page, by the line on which it begins.
func snippetsOf(page string) map[int]string {
	snippets, begin := map[int]string{}, 0
	for i, line := range strings.Split(page, "\n") {
		switch {
		case begin == 0 && strings.TrimSpace(line) == "```go":
			begin = i + 1
		case begin > 0 && strings.TrimSpace(line) == "```":
			begin = 0
		case begin > 0:
			snippets[begin] += line + "\n"
		}
	}
	return snippets
}

// commentsOf returns the code in each comment of a Go file, by the line on which the comment begins.
func commentsOf(t *testing.T, path string) map[int]string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	snippets := map[int]string{}
	for _, group := range file.Comments {
		for _, block := range new(comment.Parser).Parse(group.Text()).Content {
			if code, ok := block.(*comment.Code); ok {
				snippets[set.Position(group.Pos()).Line] += code.Text
			}
		}
	}
	return snippets
}

// TestSnippetsShowTheImport: in every page and every doc comment of the repository.
func TestSnippetsShowTheImport(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() != ".." && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		}
		var snippets map[int]string
		switch {
		case strings.HasSuffix(path, ".md"):
			page, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			snippets = snippetsOf(string(page))
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			snippets = commentsOf(t, path)
		}
		for line, snippet := range snippets {
			seen++
			for _, name := range unimported(snippet) {
				t.Errorf("%s:%d: a snippet uses %s and does not show: import %s", path, line, name, adapters[name])
			}
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Errorf("%d snippets, error %v", seen, err)
	}
}
