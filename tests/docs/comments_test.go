package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fileName matches the names of source files and pages, with or without folders.
var fileName = regexp.MustCompile(`[\w./-]*\w\.(go|lua|md)\b`)

// TestCommentsNameFiles: a file that a comment of core names exists. The comment may leave out the first folders of its path.
func TestCommentsNameFiles(t *testing.T) {
	t.Parallel()
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		files = append(files, filepath.ToSlash(path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	eachComment(t, func(path string, number int, comment string) {
		for _, name := range fileName.FindAllString(comment, -1) {
			if !slices.ContainsFunc(files, func(file string) bool { return strings.HasSuffix(file, "/"+name) }) {
				t.Errorf("%s:%d: there is no %s: %s", path, number, name, comment)
			}
		}
	})
}

// eachComment calls f for each line of a comment in the Go and Lua files of core, with the path from the root.
func eachComment(t *testing.T, f func(path string, number int, comment string)) {
	t.Helper()
	lines := 0
	count := func(path string, number int, comment string) {
		lines++
		f(path, number, comment)
	}
	err := filepath.WalkDir(filepath.Join(root, "core"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".go":
			return goComments(path, func(number int, comment string) { count(name, number, comment) })
		case ".lua":
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				if _, comment, found := strings.Cut(line, "--"); found {
					count(name, i+1, comment)
				}
			}
			return err
		}
		return nil
	})
	if err != nil || lines < 3000 {
		t.Errorf("found %d lines of comments, error %v", lines, err)
	}
}

// goComments calls f for each line of a comment in a Go file.
func goComments(path string, f func(number int, comment string)) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			first := files.Position(comment.Pos()).Line
			for i, line := range strings.Split(comment.Text, "\n") {
				f(first+i, line)
			}
		}
	}
	return nil
}

// TestRoomsAreDocumented: each exported type, function and method of core's internal packages has a comment that begins with
// its name. So has each exported method of an interface. Names in a group of constants or variables may share one comment.
func TestRoomsAreDocumented(t *testing.T) {
	t.Parallel()
	names := 0
	eachFile(t, "core/internal", func(files *token.FileSet, file *ast.File) {
		check := func(name *ast.Ident, docs ...*ast.CommentGroup) {
			if !name.IsExported() {
				return
			}
			names++
			if !slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return strings.HasPrefix(d.Text(), name.Name+" ") }) {
				t.Errorf("%s: no comment begins with %s", files.Position(name.Pos()), name.Name)
			}
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || ast.IsExported(receiver(d)) {
					check(d.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					checkSpec(t, d, spec, check)
				}
			}
		}
	})
	if names < 200 {
		t.Errorf("found only %d exported names", names)
	}
}

// checkSpec checks the comments of a type with its methods, or of constants or variables.
func checkSpec(t *testing.T, d *ast.GenDecl, spec ast.Spec, check func(name *ast.Ident, docs ...*ast.CommentGroup)) {
	t.Helper()
	switch s := spec.(type) {
	case *ast.TypeSpec:
		check(s.Name, s.Doc, d.Doc)
		if i, ok := s.Type.(*ast.InterfaceType); ok && s.Name.IsExported() {
			for _, method := range i.Methods.List {
				for _, name := range method.Names {
					check(name, method.Doc)
				}
			}
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if !d.Lparen.IsValid() {
				check(name, d.Doc)
			} else if name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
				t.Errorf("%s has no comment, nor has its group", name.Name)
			}
		}
	}
}

// receiver returns the name of the type to which a method belongs.
func receiver(method *ast.FuncDecl) string {
	name := ""
	ast.Inspect(method.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// TestLockedMethods: a function of core that calls a method whose name ends in Locked locks a mutex itself, or has such a name.
func TestLockedMethods(t *testing.T) {
	t.Parallel()
	calls := 0
	eachFile(t, "core", func(files *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			locks := strings.HasSuffix(f.Name.Name, "Locked")
			ast.Inspect(f.Body, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				switch {
				case !ok:
				case s.Sel.Name == "Lock":
					locks = true
				case strings.HasSuffix(s.Sel.Name, "Locked"):
					calls++
					if !locks {
						t.Errorf("%s: %s calls %s without the mutex", files.Position(s.Pos()), f.Name.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
	})
	if calls < 30 {
		t.Errorf("found only %d calls", calls)
	}
}

// eachFile parses the Go files below a folder, tests left out.
func eachFile(t *testing.T, folder string, f func(files *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		f(files, file)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
