package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestLogLines compares the log lines that docs/operations.md explains with those of the source.
func TestLogLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, line := range regexp.MustCompile("(?m)^\\| `(holdfast: [^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[line[1]] = true
	}
	logged := make(map[string]bool)
	for _, folder := range []string{"core", "middleware", "cronlock", "gocronlock", "asynqlock", "inspector"} {
		for _, line := range logLines(t, filepath.Join(root, folder)) {
			logged[line] = true
		}
	}
	if len(logged) < 30 {
		t.Fatalf("found only %d log lines in the source", len(logged))
	}
	for line := range logged {
		if !documented[line] {
			t.Errorf("docs/operations.md does not explain %q", line)
		}
	}
	for line := range documented {
		if !logged[line] {
			t.Errorf("docs/operations.md explains %q, which is not logged", line)
		}
	}
}

// logging are the functions whose messages begin with "holdfast: " by themselves, and those that are given it.
var (
	logging = map[string]bool{
		"Debug": true, "Info": true, "Warn": true, "Error": true, "Log": true,
		"logf": true, "warn": true,
	}
	prefixed = map[string]bool{"warnOnce": true, "found": true}
)

// logLines returns the messages that the packages in a folder log: constants whose names begin with log, constants that
// are assigned to a variable text, and arguments of the functions above.
func logLines(t *testing.T, folder string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "internal" && filepath.Base(filepath.Dir(path)) != "core" {
			return fs.SkipDir // servers of the tests
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				lines = append(lines, messages(n)...)
			case *ast.ValueSpec:
				if strings.HasPrefix(n.Names[0].Name, "log") && len(n.Values) == 1 {
					text, _ := constant(n.Values[0])
					lines = append(lines, message(text)...)
				}
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if name, ok := to.(*ast.Ident); ok && name.Name == "text" && i < len(n.Rhs) {
						text, _ := constant(n.Rhs[i])
						lines = append(lines, message(text)...)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// messages returns what a call logs: its first argument that is a constant.
func messages(call *ast.CallExpr) []string {
	name := ""
	switch fn := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = fn.Sel.Name
	case *ast.Ident:
		name = fn.Name
	}
	prefix := ""
	if prefixed[name] {
		prefix = "holdfast: "
	} else if !logging[name] {
		return nil
	}
	for _, arg := range call.Args {
		if text, ok := constant(arg); ok {
			return message(prefix + text)
		}
	}
	return nil
}

// message returns a text if it is a message, without what a format adds to it.
func message(text string) []string {
	text, _, _ = strings.Cut(text, ": %")
	if !strings.HasPrefix(text, "holdfast: ") {
		return nil
	}
	return []string{text}
}

// constant returns the value of a string literal, or of several that are joined.
func constant(expr ast.Expr) (string, bool) {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(expr.Value)
		return text, err == nil && expr.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := constant(expr.X)
		right, also := constant(expr.Y)
		return left + right, ok && also && expr.Op == token.ADD
	}
	return "", false
}
