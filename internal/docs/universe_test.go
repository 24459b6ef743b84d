package docs_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/holdfast-go/holdfast"

// sources are the packages of this module that some packages and their tests import.
type sources struct {
	fset     *token.FileSet
	files    map[string]*packageFiles // by import path
	external types.Importer           // what this module does not declare
}

// packageFiles are the syntax trees of a package that this machine would build.
type packageFiles struct {
	code, tests, externalTests []*ast.File
}

// readSources reads the packages in the directories, and builds what they import from elsewhere. It skips the test if
// something of that is not on this machine.
func readSources(t *testing.T, dirs []string) *sources {
	t.Helper()
	s := &sources{fset: token.NewFileSet(), files: make(map[string]*packageFiles)}
	elsewhere := make(map[string]bool)
	for _, dir := range dirs {
		p := s.read(t, path.Join(modulePath, dir), elsewhere)
		s.readImports(t, slices.Concat(p.tests, p.externalTests), elsewhere)
	}
	exports := exports(t, ".", elsewhere)
	for path := range elsewhere {
		if exports[path] == "" && path != "unsafe" {
			t.Skipf("package %s cannot be built without downloads, which make test makes", path)
		}
	}
	s.external = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("package %s cannot be built", path)
		}
		return os.Open(exports[path])
	})
	return s
}

// read adds a package of this module and those that it imports. It adds imports of other modules to elsewhere.
func (s *sources) read(t *testing.T, importPath string, elsewhere map[string]bool) *packageFiles {
	t.Helper()
	if files := s.files[importPath]; files != nil {
		return files
	}
	dir := filepath.Join(root, filepath.FromSlash(strings.TrimPrefix(importPath, modulePath)))
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	files := &packageFiles{
		code: s.parse(t, dir, p.GoFiles), tests: s.parse(t, dir, p.TestGoFiles), externalTests: s.parse(t, dir, p.XTestGoFiles),
	}
	s.files[importPath] = files
	s.readImports(t, files.code, elsewhere)
	return files
}

func (s *sources) readImports(t *testing.T, files []*ast.File, elsewhere map[string]bool) {
	t.Helper()
	imported := make(map[string]bool)
	for _, file := range files {
		importsOf(file, imported)
	}
	for one := range imported {
		if strings.HasPrefix(one, modulePath+"/") {
			s.read(t, one, elsewhere)
		} else {
			elsewhere[one] = true
		}
	}
}

func (s *sources) parse(t *testing.T, dir string, names []string) (files []*ast.File) {
	t.Helper()
	for _, name := range names {
		file, err := parser.ParseFile(s.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// A universe is a package of this module with its tests, and the packages that these import, all type-checked.
type universe struct {
	*sources
	tested       string // the import path
	packages     map[string]*types.Package
	info         types.Info
	types        []types.Type                            // that packages declare, without interfaces
	declarations map[types.Object]ast.Node               // of functions, methods and package-level variables
	tests        map[string]*ast.FuncDecl                // of the tested package
	uses         map[types.Object][]types.Object         // what named has found in a declaration
	methods      map[types.Object][]types.Object         // what implementers has found
	suites       map[*ast.FuncDecl]map[string][]testCase // what suite has found
}

// check type-checks a package with its tests.
func (s *sources) check(t *testing.T, dir string) *universe {
	t.Helper()
	u := &universe{
		sources: s, tested: path.Join(modulePath, dir),
		packages:     make(map[string]*types.Package),
		info:         types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)},
		declarations: make(map[types.Object]ast.Node),
		tests:        make(map[string]*ast.FuncDecl),
		uses:         make(map[types.Object][]types.Object),
		methods:      make(map[types.Object][]types.Object),
		suites:       make(map[*ast.FuncDecl]map[string][]testCase),
	}
	files := s.files[u.tested]
	if _, err := u.Import(u.tested); err != nil {
		t.Fatal(err)
	}
	if _, err := u.typeCheck(u.tested+"_test", files.externalTests); err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Concat(files.tests, files.externalTests) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && isTest(f.Name.Name) {
				u.tests[f.Name.Name] = f
			}
		}
	}
	return u
}

// isTest returns true for the name of a test or a fuzz test.
func isTest(name string) bool {
	return name != "TestMain" && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz"))
}

// Import implements [types.Importer].
func (u *universe) Import(importPath string) (*types.Package, error) {
	if p := u.packages[importPath]; p != nil {
		return p, nil
	}
	files := u.files[importPath]
	if files == nil {
		return u.external.Import(importPath)
	}
	if importPath == u.tested {
		return u.typeCheck(importPath, slices.Concat(files.code, files.tests))
	}
	return u.typeCheck(importPath, files.code)
}

func (u *universe) typeCheck(importPath string, files []*ast.File) (*types.Package, error) {
	config := types.Config{Importer: u}
	p, err := config.Check(importPath, u.fset, files, &u.info)
	if err != nil {
		return nil, err
	}
	u.packages[importPath] = p
	for _, file := range files {
		u.declare(file)
	}
	return p, nil
}

// declare notes what a file declares.
func (u *universe) declare(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			u.declarations[u.info.Defs[f.Name]] = f
			continue
		}
		for _, spec := range d.(*ast.GenDecl).Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					u.declarations[u.info.Defs[name]] = spec
				}
			case *ast.TypeSpec:
				if of := u.info.Defs[spec.Name].Type(); !types.IsInterface(of) && spec.TypeParams == nil {
					u.types = append(u.types, of)
				}
			}
		}
	}
}

// production returns true for what is declared outside of tests.
func (u *universe) production(o types.Object) bool {
	return !strings.HasSuffix(u.fset.Position(o.Pos()).Filename, "_test.go")
}
