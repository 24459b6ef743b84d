package locktest_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	ours      = "github.com/holdfast-go/holdfast/"
	miniredis = "github.com/alicebob/miniredis/v2"
)

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	list, err := exec.Command("go", append([]string{"list", "-deps"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(list))
}

// TestDependencies: this package needs core and miniredis, and what those need.
func TestDependencies(t *testing.T) {
	t.Parallel()
	const modules = "{{with .Module}}{{.Path}}{{end}}"
	allowed := goList(t, "-f", modules, "../core", miniredis)
	for _, module := range goList(t, "-f", modules, ".") {
		if !slices.Contains(allowed, module) {
			t.Errorf("locktest depends on %s", module)
		}
	}
	for _, pkg := range goList(t, ".") {
		if pkg == "testing" || strings.HasPrefix(pkg, ours+"internal") && pkg != ours+"internal/foreign" {
			t.Errorf("locktest imports %s", pkg)
		}
	}
}

// TestOnlyTestsImportThisPackage: services do not get the embedded Redis.
func TestOnlyTestsImportThisPackage(t *testing.T) {
	t.Parallel()
	for _, pkg := range goList(t, "../core", "../middleware/...", "../cronlock", "../asynqlock") {
		if pkg == ours+"locktest" || strings.HasPrefix(pkg, miniredis) {
			t.Errorf("another package imports %s", pkg)
		}
	}
}
