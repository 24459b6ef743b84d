package suites

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
)

// script takes the place of compiled tests. The first run without a guard fails in TestBusy, and the first one with a guard in TestUnsteady.
const script = `#!/bin/sh
ended() { printf '=== RUN   %s\n--- %s: %s (0.00s)\n' "$1" "$2" "$1"; }
first() { if mkdir "$0.$1" 2>/dev/null; then ended "$1" FAIL; else ended "$1" PASS; fi; }
case "$1 $` + installed.Guard + `" in
-test.list*) printf 'TestBusy\nTestGuard\nTestSlow\nTestUnsteady\n'; exit 0 ;;
*" once") ended TestBusy PASS; ended TestGuard FAIL; ended TestSlow FAIL; first TestUnsteady ;;
*" ` + installed.Baseline + `") ended TestBusy PASS; ended TestGuard PASS; ended TestSlow FAIL; ended TestUnsteady PASS ;;
*) first TestBusy; ended TestGuard PASS; ended TestSlow PASS; ended TestUnsteady PASS ;;
esac
echo FAIL; exit 1
`

// TestCheck: a difference is a test that fails each time with the guard, and neither without it nor with the baseline.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	tests := filepath.Join(dir, "tests")
	if err := os.WriteFile(tests, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &Copy{Suite: Suite{Module: "example"}, dir: dir, tests: map[string]string{"example": tests}}
	without, err := c.Without(t.Context(), "redis")
	if err != nil {
		t.Fatal(err)
	}
	if n := without.Count(Passed); n != 4 {
		t.Errorf("without a guard, %d of 4 tests pass: %v", n, without.Outcomes)
	}
	checked, err := c.Check(t.Context(), "once", "redis", without)
	if err != nil {
		t.Fatal(err)
	}
	for want, list := range map[string][]Difference{"TestGuard": checked.Failed, "TestSlow": checked.Slow, "TestUnsteady": checked.Unsteady} {
		if len(list) != 1 || list[0].Test.Name != want {
			t.Errorf("%v, want only %s", list, want)
		}
	}
}
