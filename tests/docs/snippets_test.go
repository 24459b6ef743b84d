package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// TestSnippets compiles the Go code of the pages, as the package's documentation says.
func TestSnippets(t *testing.T) {
	t.Parallel()
	byModule := make(map[string][]snippet)
	for _, p := range pages(t) {
		blocks, _ := p.Split()
		for _, b := range blocks {
			if module, ok := moduleOf(b); ok {
				byModule[module] = append(byModule[module], snippet{p.Path, b})
			}
		}
	}
	if len(byModule["."]) < 10 {
		t.Fatalf("found only %d snippets", len(byModule["."]))
	}
	for module, snippets := range byModule {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			for _, mistake := range newCompiler(t, module, snippets).check(snippets) {
				t.Error(mistake)
			}
		})
	}
}

// TestBrokenSnippetsAreFound shows that the check can fail.
func TestBrokenSnippetsAreFound(t *testing.T) {
	t.Parallel()
	good := []string{
		"lease, err := locks.Mutex(\"a\").Lock(ctx)",
		"import \"errors\"\n\nif errors.Is(nil, core.ErrNotHeld) {\n\treturn nil\n}\nfunc name() int {\n\treturn 1\n}",
		"package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }",
	}
	bad := []string{
		"lease, err := locks.Mutex(\"a\").Lock()",
		"return locks.Mutx(\"a\")",
		"return 1",
		"if {",
		"package main\n\nimport \"fmt\"\n\nfunc main() { }",
		"package main\n\nfunc main() { a := 1 }",
		"import \"no.such/package\"",
	}
	var all []snippet
	for _, code := range append(good, bad...) {
		all = append(all, snippet{"page.md", markdown.Block{Language: "go", Line: 1, Code: code}})
	}
	c := newCompiler(t, ".", all)
	for _, s := range all[:len(good)] {
		if mistakes := c.check([]snippet{s}); len(mistakes) > 0 {
			t.Errorf("%s\nfound %q", s.Code, mistakes)
		}
	}
	for _, s := range all[len(good):] {
		if mistakes := c.check([]snippet{s}); len(mistakes) == 0 {
			t.Errorf("%s\nfound nothing", s.Code)
		}
	}
}

// A snippet is a block of Go on a page.
type snippet struct {
	page string
	markdown.Block
}

// moduleOf returns the directory of the module in which a block is compiled, false if it is not.
func moduleOf(b markdown.Block) (string, bool) {
	if b.Language != "go" || b.Marker == "fragment" {
		return "", false
	}
	if module, ok := strings.CutPrefix(b.Marker, "module: "); ok {
		return module, true
	}
	return ".", true
}

// A compiler checks snippets against the packages of one module.
type compiler struct {
	module   string
	names    map[string]*ast.File // what testdata declares, by its base name
	fset     *token.FileSet
	importer types.Importer // keeps what it has read
}

func newCompiler(t *testing.T, module string, snippets []snippet) *compiler {
	t.Helper()
	c := &compiler{module: module, names: make(map[string]*ast.File), fset: token.NewFileSet()}
	wanted := make(map[string]bool)
	paths, err := filepath.Glob("testdata/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %q, error %v", paths, err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(c.fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		c.names[strings.TrimSuffix(filepath.Base(path), ".go")] = file
		if module == "." {
			importsOf(file, wanted)
		}
	}
	for _, s := range snippets {
		text, _ := s.file(module == ".")
		if file, err := parser.ParseFile(c.fset, "", text, parser.ImportsOnly); err == nil {
			importsOf(file, wanted)
		}
	}
	exports := exports(t, module, wanted)
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("package %s cannot be built", path)
		}
		return os.Open(exports[path])
	})
	return c
}

func importsOf(file *ast.File, into map[string]bool) {
	for _, i := range file.Imports {
		into[strings.Trim(i.Path.Value, `"`)] = true
	}
}

// exports builds packages and what they import, and returns the files that describe their exports, by path. It skips the
// test if another module's packages are not on this machine.
func exports(t *testing.T, module string, paths map[string]bool) map[string]string {
	t.Helper()
	args := []string{"list", "-e", "-export", "-deps", "-json=ImportPath,Export,Error"}
	if underRace && module == "." {
		args = append(args, "-race") // what the tests of this module are built of is in the cache already
	}
	args = append(args, slices.Sorted(maps.Keys(paths))...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join(root, module)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOTOOLCHAIN=local")
	if module != "." {
		cmd.Env = append(cmd.Env, "GOWORK=off")
	}
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		if module != "." {
			t.Skipf("module %s cannot be built without downloads: %v: %s", module, err, exit.Stderr)
		}
		t.Fatalf("%v: %v: %s", args, err, exit.Stderr)
	}
	found := make(map[string]string)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export string
			Error              *struct{ Err string }
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Error != nil && module != "." {
			t.Skipf("module %s cannot be built without downloads: %s", module, p.Error.Err)
		}
		found[p.ImportPath] = p.Export
	}
}

// check returns a line for each mistake in the snippets.
func (c *compiler) check(snippets []snippet) (mistakes []string) {
	for _, s := range snippets {
		for _, err := range c.compile(s) {
			mistakes = append(mistakes, err.Error())
		}
	}
	return mistakes
}

func (c *compiler) compile(s snippet) (mistakes []error) {
	text, fragment := s.file(c.module == ".")
	file, err := parser.ParseFile(c.fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return []error{err}
	}
	files := []*ast.File{file}
	if fragment && c.module == "." {
		names := c.names[strings.TrimSuffix(path.Base(original(s.page)), ".md")]
		if names == nil {
			names = c.names["names"]
		}
		files = append(files, names)
	}
	config := types.Config{Importer: c.importer, Error: func(err error) {
		if !fragment || !unused(err) {
			mistakes = append(mistakes, err)
		}
	}}
	_, _ = config.Check("snippet", c.fset, files, nil) // tells Error
	return mistakes
}

// unused reports whether an error is one that a fragment may have: that it does not use something.
func unused(err error) bool {
	text := err.Error()
	return strings.Contains(text, "declared and not used") || strings.HasSuffix(text, "and not used")
}
