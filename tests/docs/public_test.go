package docs_test

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notPublic are the folders without packages that users import.
var notPublic = []string{".git", "cmd", "docs", "examples", "internal", "lab", "testdata", "tests", "tools"}

// eachPublic calls f for each folder with a package that users import.
func eachPublic(t *testing.T, f func(p *build.Package)) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if slices.Contains(notPublic, entry.Name()) {
			return fs.SkipDir
		}
		if p, err := build.ImportDir(path, 0); err == nil {
			found++
			f(p)
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Errorf("found %d packages, error %v", found, err)
	}
}

// TestSymbolsAreDocumented: each package that users import, and all that it exports, has a comment. A group of constants or
// variables may share one.
func TestSymbolsAreDocumented(t *testing.T) {
	t.Parallel()
	eachPublic(t, func(p *build.Package) {
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		pkg, err := doc.NewFromFiles(fset, files, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		check := func(name, comment string) {
			if comment == "" {
				t.Errorf("%s: %s has no comment", p.Dir, name)
			}
		}
		functions, values := pkg.Funcs, slices.Concat(pkg.Consts, pkg.Vars)
		check("the package", pkg.Doc)
		for _, typ := range pkg.Types {
			check(typ.Name, typ.Doc)
			functions = slices.Concat(functions, typ.Funcs, typ.Methods)
			values = slices.Concat(values, typ.Consts, typ.Vars)
		}
		for _, f := range functions {
			check(f.Recv+" "+f.Name, f.Doc)
		}
		for _, v := range values {
			for _, spec := range v.Decl.Specs {
				spec := spec.(*ast.ValueSpec)
				check(spec.Names[0].Name, v.Doc+spec.Doc.Text()+spec.Comment.Text())
			}
		}
	})
}

// TestExamplesArePublic: examples do nothing that their readers cannot do, because a package is internal.
func TestExamplesArePublic(t *testing.T) {
	t.Parallel()
	examples := 0
	eachPublic(t, func(p *build.Package) {
		for _, name := range p.XTestGoFiles {
			if !strings.HasPrefix(name, "example") {
				continue
			}
			examples++
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				if strings.Contains(spec.Path.Value, "/internal/") || strings.Contains(spec.Path.Value, "holdfast/tests/") {
					t.Errorf("%s/%s imports %s", p.Dir, name, spec.Path.Value)
				}
			}
		}
	})
	if examples < 10 {
		t.Errorf("found %d files of examples", examples)
	}
}
