package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// longestFunction is how many lines a function may have, from its first line to its closing brace: see CONTRIBUTING.md.
const longestFunction = 60

// TestFunctionsAreShort reads all Go files of all modules, tests included.
func TestFunctionsAreShort(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	functions := 0
	check := func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			name := "a function without a name"
			switch f := n.(type) {
			case *ast.FuncDecl:
				name = f.Name.Name
			case *ast.FuncLit: // outside of other functions
			default:
				return true
			}
			functions++
			begin, end := files.Position(n.Pos()), files.Position(n.End())
			if lines := end.Line - begin.Line + 1; lines > longestFunction {
				t.Errorf("%s: %s has %d lines, at most %d are allowed", begin, name, lines, longestFunction)
			}
			return false
		})
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err == nil {
			check(file)
		}
		return err
	})
	if err != nil || functions < 1000 {
		t.Errorf("found %d functions, error %v", functions, err)
	}
}
