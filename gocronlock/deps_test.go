package gocronlock_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestDependencies: whoever imports gocronlock gets gocron, what core needs, and no internal package of the root module. Why:
// the versions of the two modules may differ.
func TestDependencies(t *testing.T) {
	t.Parallel()
	list := func(format, pkg string) []string {
		out, err := exec.Command("go", "list", "-deps", "-f", format, pkg).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		return strings.Fields(string(out))
	}
	const modules = "{{with .Module}}{{.Path}}{{end}}"
	allowed := slices.Concat(list(modules, "github.com/holdfast-go/holdfast/core"), list(modules, "github.com/go-co-op/gocron/v2"))
	for _, module := range list(modules, ".") {
		if !slices.Contains(allowed, module) && !strings.HasSuffix(module, "/gocronlock") {
			t.Errorf("gocronlock depends on %s", module)
		}
	}
	core := list("{{.ImportPath}}", "github.com/holdfast-go/holdfast/core")
	for _, pkg := range list("{{.ImportPath}}", ".") {
		if pkg == "testing" || strings.HasPrefix(pkg, "github.com/holdfast-go/holdfast/internal") && !slices.Contains(core, pkg) {
			t.Errorf("gocronlock imports %s", pkg)
		}
	}
}
