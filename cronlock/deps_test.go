package cronlock_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	list, err := exec.Command("go", append([]string{"list", "-deps"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(list))
}

// TestDependencies: whoever imports cronlock gets robfig/cron and what core needs.
func TestDependencies(t *testing.T) {
	t.Parallel()
	const modules = "{{with .Module}}{{.Path}}{{end}}"
	allowed := append(goList(t, "-f", modules, "../core"), "github.com/robfig/cron/v3")
	for _, module := range goList(t, "-f", modules, ".") {
		if !slices.Contains(allowed, module) {
			t.Errorf("cronlock depends on %s", module)
		}
	}
}

// TestImports: no other package of this module, and nothing of the tests, reaches users' binaries.
func TestImports(t *testing.T) {
	t.Parallel()
	for _, pkg := range goList(t, ".") {
		if strings.HasSuffix(pkg, "holdfast/internal/outage") || strings.HasSuffix(pkg, "holdfast/internal/foreign") {
			continue
		}
		if pkg == "testing" || strings.Contains(pkg, "holdfast/internal") || strings.Contains(pkg, "holdfast/middleware") {
			t.Errorf("cronlock imports %s", pkg)
		}
	}
}

// TestOnlyThisPackageImportsCron: whoever does not use cronlock does not get it.
func TestOnlyThisPackageImportsCron(t *testing.T) {
	t.Parallel()
	for _, pkg := range goList(t, "../core", "../middleware/...") {
		if strings.Contains(pkg, "robfig/cron") {
			t.Errorf("core or middleware imports %s", pkg)
		}
	}
}
