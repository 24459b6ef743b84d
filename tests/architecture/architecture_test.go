// Package architecture_test holds what the packages of this repository import: what users get with each of them, and what the
// packages of core see of each other.
package architecture_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	prefix = "github.com/holdfast-go/holdfast/"
)

// allowed has a row for each package that users import, and for the command: the packages of this repository and the modules
// that it imports. What these import comes with them and is not repeated, nor are folders named internal below a package.
var allowed = map[string][]string{
	"core":     {"github.com/google/uuid", "github.com/redis/go-redis/v9", "internal/foreign", "internal/seal", "internal/throttle"},
	"locktest": {"core", "github.com/alicebob/miniredis/v2"},

	"middleware/nethttp": {"core", "internal/guard", "internal/httprecord", "internal/jsonfield", "internal/throttle"},
	"middleware/gin":     {"middleware/nethttp", "github.com/gin-gonic/gin", "internal/ginroute"},
	"middleware/echo":    {"middleware/nethttp", "github.com/labstack/echo/v5", "internal/ginroute"},
	"middleware/echo4":   {"middleware/nethttp", "github.com/labstack/echo/v4", "internal/ginroute"},
	"middleware/fiber": {
		"middleware/nethttp", "github.com/gofiber/fiber/v3", "github.com/valyala/fasthttp", "internal/ginroute", "internal/httprecord",
	},

	"middleware/grpc": {
		"core", "internal/guard", "middleware/nethttp", "google.golang.org/grpc",
		"google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc",
	},
	"middleware/connect": {
		"core", "internal/guard", "middleware/nethttp", "connectrpc.com/connect",
		"google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc",
	},

	"cronlock":   {"core", "github.com/robfig/cron/v3", "internal/guard", "internal/throttle"},
	"gocronlock": {"core", "github.com/go-co-op/gocron/v2", "internal/guard", "internal/throttle"},
	"asynqlock":  {"core", "cronlock", "github.com/hibiken/asynq", "internal/jsonfield"},
	"msglock":    {"core", "internal/guard", "internal/throttle"},

	"sqllock": {"core", "internal/throttle"},

	"msglock/watermill": {"msglock", "github.com/ThreeDotsLabs/watermill"},

	"lockdebug": {"core", "internal/hosts"},
	"inspector": {"core", "cronlock", "internal/hosts", "internal/httprecord", "internal/logdigest"},
	"otellock":  {"core", "go.opentelemetry.io/otel", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace"},
	"cmd/holdfast": {
		"core", "cronlock", "middleware/nethttp", "msglock", "internal/ginroute", "internal/logdigest",
		"github.com/alecthomas/kong", "github.com/mattn/go-runewidth", "golang.org/x/sys", "golang.org/x/term",
	},
}

// forTests are what only tests use, by the beginning of their paths. It comes with no package that users import.
var forTests = []string{"testing", "net/http/httptest", prefix + "tests/", prefix + "lab/", "go.uber.org/goleak"}

// A goPackage is what "go list" prints of a package.
type goPackage struct {
	ImportPath, Name                   string
	Module                             *struct{ Path string }
	Imports, TestImports, XTestImports []string
}

// packages are the packages of one module with all that they import, by import path.
type packages map[string]goPackage

// load lists the packages of the module in a folder. It downloads nothing, and skips the test if
// what another module than the root needs is missing.
func load(t *testing.T, folder string) packages {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Module,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = filepath.Join(root, folder)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case err != nil && folder == ".":
		t.Fatalf("%v: %s", err, &stderr)
	case err != nil:
		t.Skipf("module %s: %v: %s", folder, err, &stderr)
	}
	all := make(packages)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// closure returns a package and all that it imports, directly or not. It looks only into packages below a path.
func (all packages) closure(path, below string) map[string]bool {
	seen := make(map[string]bool)
	var visit func(path string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		if strings.HasPrefix(path, below) {
			for _, imported := range all[path].Imports {
				visit(imported)
			}
		}
	}
	visit(path)
	return seen
}

// isInternal reports whether users cannot import a package.
func isInternal(path string) bool { return strings.Contains(path+"/", "/internal/") }

// published returns the packages of the module in a folder that users import or run.
func (all packages) published(folder string) (paths []string) {
	module := strings.TrimSuffix(prefix+strings.TrimPrefix(folder, "."), "/")
	for path, p := range all {
		if p.Module != nil && p.Module.Path == module && !isInternal(path) && !strings.Contains(path+"/", "/tests/") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// folders are the folders of the modules with packages that users import, and of the command.
var folders = []string{
	".", "cmd/holdfast", "gocronlock", "inspector", "middleware/connect", "middleware/echo", "middleware/echo4", "middleware/fiber",
	"middleware/grpc", "msglock/watermill", "otellock",
}

// TestImports: whoever imports a package gets what its row says, and nothing that only tests use.
func TestImports(t *testing.T) {
	t.Parallel()
	for _, folder := range folders {
		all := load(t, folder)
		for _, path := range all.published(folder) {
			name := strings.TrimPrefix(path, prefix)
			if _, known := allowed[name]; !known {
				t.Errorf("%s has no row", name)
			}
			want, found := inRow(name), all.imports(path)
			for _, imported := range found {
				if !slices.Contains(want, imported) {
					t.Errorf("%s imports %s, which its row does not have", name, imported)
				}
			}
			for _, imported := range want {
				if !slices.Contains(found, imported) {
					t.Errorf("the row of %s has %s, which it does not import", name, imported)
				}
			}
			for imported := range all.closure(path, "") {
				if slices.ContainsFunc(forTests, func(begin string) bool { return strings.HasPrefix(imported, begin) }) {
					t.Errorf("%s imports %s, which is for tests", name, imported)
				}
			}
		}
	}
}

// inRow returns what the row of a package has, and the rows of what is in it.
func inRow(name string) (all []string) {
	for _, imported := range allowed[name] {
		all = append(append(all, imported), inRow(imported)...)
	}
	return all
}

// imports returns the packages of this repository that a package imports, directly or not, and the modules that these import.
func (all packages) imports(path string) []string {
	found := make(map[string]bool)
	for imported := range all.closure(path, prefix) {
		name, ours := strings.CutPrefix(imported, prefix)
		switch module := all[imported].Module; {
		case !ours && module != nil:
			found[module.Path] = true
		case ours && imported != path && !strings.Contains(name, "/internal/"):
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// TestInternalPackages: a package of the library, the command or an example imports each internal package.
func TestInternalPackages(t *testing.T) {
	t.Parallel()
	used, internal := make(map[string]bool), make(map[string]bool)
	for _, folder := range append(folders, "examples") {
		all := load(t, folder)
		for _, path := range all.published(folder) {
			maps.Copy(used, all.closure(path, prefix))
		}
		for path := range all {
			if strings.HasPrefix(path, prefix) && isInternal(path) {
				internal[path] = true
			}
		}
	}
	for path := range internal {
		if !used[path] {
			t.Errorf("only tests import %s: move it to tests", path)
		}
	}
}

// row matches a row of the table of packages in docs/architecture.md.
var row = regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\|[^|\n]*\\|([^|\n]*)\\|$")

// TestCore: the packages of core import each other as the table of docs/architecture.md says, downwards only.
func TestCore(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	found, below := load(t, ".").ofCore(), map[string]bool{}
	for _, r := range slices.Backward(row.FindAllStringSubmatch(section, -1)) {
		name, imports := r[1], strings.FieldsFunc(r[2], func(c rune) bool { return strings.ContainsRune("` ,", c) })
		if strings.TrimSpace(r[2]) == "all below" {
			imports = slices.Collect(maps.Keys(below))
		} else if _, exists := found[name]; !exists {
			t.Errorf("the table has %s, which does not exist", name)
		}
		for _, imported := range imports {
			if !below[imported] {
				t.Errorf("the table lets %s import %s, which has no row below it", name, imported)
			} else if name != "core" && !found[name][imported] {
				t.Errorf("the table lets %s import %s, but it does not", name, imported)
			}
		}
		for imported := range found[name] {
			if !slices.Contains(imports, imported) {
				t.Errorf("%s imports %s, which the table does not allow", name, imported)
			}
		}
		below[name] = true
	}
	for name := range found {
		if !below[name] {
			t.Errorf("the table has no row for %s", name)
		}
	}
}

// ofCore returns what the packages of core import of each other, their tests included, as the table names them.
func (all packages) ofCore() map[string]map[string]bool {
	found := make(map[string]map[string]bool)
	inCore := func(path string) (string, bool) {
		name, ok := strings.CutPrefix(path, prefix+"core")
		return cmp.Or(strings.TrimPrefix(name, "/internal/"), "core"), ok
	}
	for path, p := range all {
		name, ok := inCore(path)
		if !ok {
			continue
		}
		found[name] = make(map[string]bool)
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if imported, ok := inCore(path); ok && imported != name {
				found[name][imported] = true
			}
		}
	}
	return found
}
