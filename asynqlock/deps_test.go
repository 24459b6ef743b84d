package asynqlock_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	ours   = "github.com/holdfast-go/holdfast/"
	theirs = "github.com/hibiken/asynq"
)

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	list, err := exec.Command("go", append([]string{"list", "-deps"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(list))
}

// TestDependencies: whoever imports asynqlock gets asynq with what that needs, and what core needs. robfig/cron, which
// cronlock needs, comes with asynq.
func TestDependencies(t *testing.T) {
	t.Parallel()
	const modules = "{{with .Module}}{{.Path}}{{end}}"
	allowed := goList(t, "-f", modules, "../core", theirs)
	for _, module := range goList(t, "-f", modules, ".") {
		if !slices.Contains(allowed, module) {
			t.Errorf("asynqlock depends on %s", module)
		}
	}
}

// TestImports: no other adapter of this module but cronlock, for Enqueue, and nothing of the tests, reaches users'
// binaries.
func TestImports(t *testing.T) {
	t.Parallel()
	allowed := []string{
		ours + "core", ours + "asynqlock", ours + "cronlock", ours + "internal/jsonfield", ours + "internal/throttle",
		ours + "internal/outage", ours + "internal/foreign",
	}
	for _, pkg := range goList(t, ".") {
		inCore := strings.HasPrefix(pkg, ours+"core/internal/")
		if pkg == "testing" || strings.HasPrefix(pkg, ours) && !inCore && !slices.Contains(allowed, pkg) {
			t.Errorf("asynqlock imports %s", pkg)
		}
	}
}

// TestOnlyThisPackageImportsAsynq: whoever does not use asynqlock does not get it.
func TestOnlyThisPackageImportsAsynq(t *testing.T) {
	t.Parallel()
	for _, pkg := range goList(t, "../core", "../middleware/...", "../cronlock/...") {
		if strings.HasPrefix(pkg, theirs) {
			t.Errorf("another package imports %s", pkg)
		}
	}
}
