package core_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDependencies: a program that imports core gets go-redis with what it needs, and uuid.
func TestDependencies(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{
		"github.com/holdfast-go/holdfast": true,
		"github.com/redis/go-redis/v9":    true,
		"github.com/google/uuid":          true,
		// What go-redis needs.
		"github.com/cespare/xxhash/v2":  true,
		"github.com/zeebo/xxh3":         true,
		"github.com/klauspost/cpuid/v2": true,
		"go.uber.org/atomic":            true,
		"golang.org/x/sys":              true,
	}
	list, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for module := range strings.FieldsSeq(string(list)) {
		if !allowed[module] {
			t.Errorf("core depends on %s", module)
		}
	}
}

// TestNoTestsInProduction: nothing of the tests reaches users' binaries.
func TestNoTestsInProduction(t *testing.T) {
	t.Parallel()
	list, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for pkg := range strings.FieldsSeq(string(list)) {
		if pkg == "testing" || strings.Contains(pkg, "holdfast/internal") && !strings.HasSuffix(pkg, "holdfast/internal/foreign") {
			t.Errorf("core imports %s", pkg)
		}
	}
}
