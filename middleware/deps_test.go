package middleware_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const ginModule = "github.com/gin-gonic/gin"

func goList(t *testing.T, args ...string) string {
	t.Helper()
	list, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return string(list)
}

// TestDependencies: the engine and the adapter for net/http need no more than core, whose test lists that.
func TestDependencies(t *testing.T) {
	t.Parallel()
	const modules = "{{with .Module}}{{.Path}}{{end}}"
	allowed := strings.Fields(goList(t, "-deps", "-f", modules, "../core"))
	for _, pkg := range []string{".", "./nethttp"} {
		for module := range strings.FieldsSeq(goList(t, "-deps", "-f", modules, pkg)) {
			if !slices.Contains(allowed, module) {
				t.Errorf("%s depends on %s", pkg, module)
			}
		}
	}
}

// TestOnlyOnePackageImportsGin: whoever does not use gin does not get it.
func TestOnlyOnePackageImportsGin(t *testing.T) {
	t.Parallel()
	var found []string
	for line := range strings.Lines(goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "../...")) {
		pkg := strings.Fields(line)
		if slices.ContainsFunc(pkg[1:], func(path string) bool { return strings.HasPrefix(path, ginModule) }) {
			found = append(found, pkg[0])
		}
	}
	if want := []string{"github.com/holdfast-go/holdfast/middleware/gin"}; !slices.Equal(found, want) {
		t.Errorf("gin is imported by %v, want %v", found, want)
	}
}

// TestNoTestsInProduction: nothing of the tests reaches users' binaries.
func TestNoTestsInProduction(t *testing.T) {
	t.Parallel()
	for pkg := range strings.FieldsSeq(goList(t, "-deps", "./...")) {
		shared := strings.HasSuffix(pkg, "holdfast/internal/jsonfield") || strings.HasSuffix(pkg, "holdfast/internal/throttle") ||
			strings.HasSuffix(pkg, "holdfast/internal/outage") || strings.HasSuffix(pkg, "holdfast/internal/ginroute") ||
			strings.HasSuffix(pkg, "holdfast/internal/foreign")
		if pkg == "testing" || strings.Contains(pkg, "holdfast/internal") && !shared {
			t.Errorf("a package of the middleware imports %s", pkg)
		}
	}
}
