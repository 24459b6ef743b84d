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
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// imports are the packages that a fragment may use without importing them, by the name that it uses.
var imports = map[string]string{
	"context": "context", "json": "encoding/json", "errors": "errors", "fmt": "fmt", "log": "log", "slog": "log/slog",
	"http": "net/http", "io": "io", "os": "os", "time": "time", "tls": "crypto/tls", "sql": "database/sql",
	"testing": "testing", "synctest": "testing/synctest", "httptest": "net/http/httptest", "rand": "crypto/rand",
	"atomic": "sync/atomic",
	"gin":    "github.com/gin-gonic/gin", "asynq": "github.com/hibiken/asynq", "redis": "github.com/redis/go-redis/v9",
	"cron":      "github.com/robfig/cron/v3",
	"asynqlock": "github.com/holdfast-go/holdfast/asynqlock",
	"msglock":   "github.com/holdfast-go/holdfast/msglock",
	"core":      "github.com/holdfast-go/holdfast/core",
	"cronlock":  "github.com/holdfast-go/holdfast/cronlock",
	"ginlock":   "github.com/holdfast-go/holdfast/middleware/gin",
	"httplock":  "github.com/holdfast-go/holdfast/middleware/nethttp",
	"lockdebug": "github.com/holdfast-go/holdfast/lockdebug",
	"locktest":  "github.com/holdfast-go/holdfast/locktest",
	"sqllock":   "github.com/holdfast-go/holdfast/sqllock",
}

// A snippet is a block of Go on a page.
type snippet struct {
	page string
	markdown.Block
}

// TestSnippets compiles the Go code of the pages, as the package's documentation says.
func TestSnippets(t *testing.T) {
	t.Parallel()
	byModule := make(map[string][]snippet)
	for _, p := range pages(t) {
		blocks, _ := p.Split()
		for _, b := range blocks {
			if b.Language == "go" && b.Marker != "fragment" {
				module, ok := strings.CutPrefix(b.Marker, "module: ")
				if !ok {
					module = "."
				}
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
			compile(t, module, snippets)
		})
	}
}

// compile checks the types of snippets against the packages of a module.
func compile(t *testing.T, module string, snippets []snippet) {
	fset := token.NewFileSet()
	parse := func(name, text string) (*ast.File, error) {
		return parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	}
	wanted := make(map[string]bool)
	want := func(file *ast.File) {
		for _, spec := range file.Imports {
			wanted[strings.Trim(spec.Path.Value, `"`)] = true
		}
	}
	declared := make(map[string]*ast.File) // what testdata declares, by page
	if module == "." {
		paths, _ := filepath.Glob("testdata/*.go")
		for _, path := range paths {
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			declared[strings.TrimSuffix(filepath.Base(path), ".go")] = file
			want(file)
		}
	}
	files := make([][]*ast.File, len(snippets)) // none if a snippet cannot be parsed
	fragment := make([]bool, len(snippets))
	for i, s := range snippets {
		var text string
		text, fragment[i] = s.file(module == ".")
		file, err := parse("", text)
		if err != nil {
			t.Error(err)
			continue
		}
		want(file)
		files[i] = []*ast.File{file}
		if page, _, _ := strings.Cut(filepath.Base(s.page), "."); fragment[i] && declared[page] != nil {
			files[i] = append(files[i], declared[page])
		} else if fragment[i] && module == "." {
			files[i] = append(files[i], declared["names"])
		}
	}
	exports := exports(t, module, wanted)
	importer := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if strings.HasPrefix(path, "github.com/holdfast-go/holdfast/internal") || exports[path] == "" {
			return nil, fmt.Errorf("package %s cannot be used", path)
		}
		return os.Open(exports[path])
	})
	for i, s := range snippets {
		config := types.Config{Importer: importer, Error: func(err error) {
			// A fragment need not use its variables and imports.
			if !fragment[i] || !regexp.MustCompile(`declared and not used|and not used$`).MatchString(err.Error()) {
				t.Errorf("%v (in the block at %s:%d)", err, s.page, s.Line)
			}
		}}
		_, _ = config.Check("snippet", fset, files[i], nil) // calls Error
	}
}

// exports builds packages and what they import, and returns the files that describe their exports, by path. It skips the
// test if another module's packages are not on this machine.
func exports(t *testing.T, module string, paths map[string]bool) map[string]string {
	t.Helper()
	args := append([]string{"list", "-e", "-export", "-deps", "-json=ImportPath,Export,Error"}, slices.Sorted(maps.Keys(paths))...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join(root, module)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOTOOLCHAIN=local")
	if module != "." {
		cmd.Env = append(cmd.Env, "GOWORK=off")
	}
	out, err := cmd.Output()
	found := make(map[string]string)
	for decoder := json.NewDecoder(bytes.NewReader(out)); err == nil; {
		var p struct {
			ImportPath, Export string
			Error              *struct{ Err string }
		}
		if err = decoder.Decode(&p); err == nil && p.Error != nil && module != "." {
			err = errors.New(p.Error.Err)
		}
		found[p.ImportPath] = p.Export
	}
	switch {
	case errors.Is(err, io.EOF):
		return found
	case module != ".":
		t.Skipf("module %s cannot be built without downloads: %v", module, err)
	}
	t.Fatal(err)
	return nil
}

// declares matches the first line of what a fragment declares beside its statements.
var declares = regexp.MustCompile(`^(?:func (?:\([^)]*\) )?\w|type \w|import )`)

// file returns the Go file that stands for the snippet, and whether it is a fragment. given tells whether a fragment gets the
// usual imports.
func (s snippet) file(given bool) (text string, fragment bool) {
	if _, err := parser.ParseFile(token.NewFileSet(), "", s.Code, parser.PackageClauseOnly); err == nil {
		return fmt.Sprintf("//line %s:%d\n%s", s.page, s.Line, s.Code), false
	}
	var top, body strings.Builder
	to := &body
	for i, line := range strings.Split(strings.TrimRight(s.Code, "\n"), "\n") {
		if declares.MatchString(line) {
			to = &top
		}
		fmt.Fprintf(to, "//line %s:%d\n%s\n", s.page, s.Line+i, line)
		opens := declares.MatchString(line) && strings.ContainsAny(line[len(line)-1:], "{(")
		if to == &top && !opens && (declares.MatchString(line) || line == "}" || line == ")") {
			to = &body
		}
	}
	text = "package snippet\n"
	for name, path := range imports {
		if given && !strings.Contains(top.String(), `"`+path+`"`) {
			text += fmt.Sprintf("import %s %q\n", name, path)
		}
	}
	return text + top.String() + "func _() error {\n" + body.String() + "return nil\n}\n", true
}
