package docs_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// logSections are the sections of docs/log-lines.md, and the folders whose lines each has.
var logSections = []struct {
	title   string
	folders []string
}{
	{"core", []string{"core"}},
	{"Guards", []string{"internal/guard", "middleware"}},
	{"cronlock", []string{"cronlock"}},
	{"gocronlock", []string{"gocronlock"}},
	{"asynqlock", []string{"asynqlock"}},
	{"msglock", []string{"msglock"}},
	{"sqllock", []string{"sqllock"}},
	{"inspector", []string{"inspector"}},
}

// TestLogLines: docs/log-lines.md has each line that the source logs, and no other, with a level that the source gives it and
// with what to do. With -update it adds the lines that are missing and removes those that nothing logs; what to do is
// written by hand.
func TestLogLines(t *testing.T) {
	t.Parallel()
	const name = "docs/log-lines.md"
	page := readFile(t, name)
	for _, s := range logSections {
		logged := make(map[string]map[string]bool) // the levels of each text
		for _, folder := range s.folders {
			logLines(t, folder, logged)
		}
		if len(logged) == 0 {
			t.Errorf("no line found in %v", s.folders)
		}
		_, table, found := strings.Cut(page, "\n## "+s.title+"\n")
		if !found {
			t.Fatalf("%s has no section %s", name, s.title)
		}
		table, _, _ = strings.Cut(table, "\n## ")
		explained := make(map[string]string) // the row of each text
		rows := logRow.FindAllStringSubmatch(table, -1)
		for _, row := range rows {
			explained[row[1]] = row[0]
			levels := logged["holdfast: "+row[1]]
			for _, level := range logLevel.FindAllString(row[2], -1) {
				if levels != nil && !levels[level] {
					t.Errorf("%s: %q is logged with %v, not with %s", name, row[1], slices.Sorted(maps.Keys(levels)), level)
				}
			}
			if strings.TrimSpace(row[3]) == "" {
				t.Errorf("%s does not say what to do about %q", name, row[1])
			}
		}
		var updated []string
		for _, row := range rows {
			if logged["holdfast: "+row[1]] == nil {
				t.Errorf("%s explains %q, which is not logged", name, row[1])
				continue
			}
			updated = append(updated, row[0])
		}
		for _, text := range slices.Sorted(maps.Keys(logged)) {
			text = strings.TrimPrefix(text, "holdfast: ")
			if explained[text] == "" {
				t.Errorf("%s lacks %q", name, text)
				levels := strings.Join(slices.Sorted(maps.Keys(logged["holdfast: "+text])), ", ")
				updated = append(updated, fmt.Sprintf("| `holdfast: %s` | %s | |", text, levels))
			}
		}
		if len(rows) > 0 {
			first, last := strings.Index(table, rows[0][0]), rows[len(rows)-1][0]
			old := table[first : strings.LastIndex(table, last)+len(last)]
			page = strings.Replace(page, old, strings.Join(updated, "\n"), 1)
		}
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, name), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	logRow   = regexp.MustCompile("(?m)^\\| `holdfast: ([^`]+)` \\|([^|]*)\\|(.*)\\|$")
	logLevel = regexp.MustCompile(`\b(?:debug|info|warn|error)\b`)
)

// logCalls are the functions that log, with the level if the name has it, and what they put before the text.
var logCalls = map[string]struct{ level, prefix string }{
	"Debug": {level: "debug"}, "DebugContext": {level: "debug"}, "Info": {level: "info"}, "InfoContext": {level: "info"},
	"Warn": {level: "warn"}, "WarnContext": {level: "warn"}, "Error": {level: "error"}, "ErrorContext": {level: "error"},
	"Log": {}, "LogAttrs": {}, "Event": {}, "Line": {},
	"warnOnce": {"warn", "holdfast: "}, // of core
	"found":    {"warn", "holdfast: "}, // of SettingsCheck
}

// logLines adds the texts that the packages in a folder log, each with its levels. A text is a constant, or a variable of the
// function to which constants are assigned.
func logLines(t *testing.T, folder string, logged map[string]map[string]bool) {
	t.Helper()
	packages := make(map[string][]*ast.File)
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range packages {
		values := assigned(files)
		for _, file := range files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				local := assigned([]*ast.FuncDecl{f})
				ast.Inspect(f, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					method, ok := call.Fun.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					rule, ok := logCalls[method.Sel.Name]
					if !ok {
						return true
					}
					var texts, levels []string
					for _, arg := range call.Args {
						for _, v := range resolve(arg, local, values) {
							if level, ok := strings.CutPrefix(v, "slog.Level"); ok {
								levels = append(levels, strings.ToLower(level))
							} else if v = rule.prefix + v; strings.HasPrefix(v, "holdfast: ") && (rule.prefix == "" || len(texts) == 0) {
								texts = append(texts, v)
							}
						}
					}
					if rule.level != "" {
						levels = append(levels, rule.level)
					}
					for _, text := range texts {
						if logged[text] == nil {
							logged[text] = make(map[string]bool)
						}
						for _, level := range levels {
							logged[text][level] = true
						}
					}
					return true
				})
			}
		}
	}
}

// assigned returns what is assigned to each name in some nodes.
func assigned[N ast.Node](nodes []N) map[string][]ast.Expr {
	all := make(map[string][]ast.Expr)
	add := func(names, values []ast.Expr) {
		for i, name := range names {
			if id, ok := name.(*ast.Ident); ok && len(names) == len(values) {
				all[id.Name] = append(all[id.Name], values[i])
			}
		}
	}
	for _, n := range nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				add(n.Lhs, n.Rhs)
			case *ast.ValueSpec:
				names := make([]ast.Expr, len(n.Names))
				for i, name := range n.Names {
					names[i] = name
				}
				add(names, n.Values)
			}
			return true
		})
	}
	return all
}

// resolve returns the constant strings, and the names of levels of slog, that an expression may be.
func resolve(e ast.Expr, scopes ...map[string][]ast.Expr) (values []string) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return []string{constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0))}
		}
	case *ast.SelectorExpr:
		if strings.HasPrefix(e.Sel.Name, "Level") {
			return []string{"slog." + e.Sel.Name}
		}
	case *ast.BinaryExpr:
		for _, left := range resolve(e.X, scopes...) {
			for _, right := range resolve(e.Y, scopes...) {
				values = append(values, left+right)
			}
		}
	case *ast.Ident:
		for i, scope := range scopes {
			if of := scope[e.Name]; of != nil {
				rest := slices.Clone(scopes[i:]) // without the name itself: a loop assigns it to another one, and back
				rest[0] = maps.Clone(scope)
				delete(rest[0], e.Name)
				for _, v := range of {
					values = append(values, resolve(v, rest...)...)
				}
				return values
			}
		}
	}
	return values
}
