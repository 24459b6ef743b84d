package docs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstChange does the exercise of CONTRIBUTING.md with copies of the files: the test of step 2 fails until the code of
// step 3 is there.
func TestFirstChange(t *testing.T) {
	t.Parallel()
	need(t, "redis-server")
	const test, code = "tests/client/preflight_warnings_test.go", "core/internal/preflight/check.go"
	entry, warning := blockOf(t, "CONTRIBUTING.md", `"append-only`).Code, blockOf(t, "CONTRIBUTING.md", "if").Code
	edits := map[string]string{test: behind(t, test, `"unknown": `, "", entry)}
	if out, passed := firstChange(t, edits); passed || !strings.Contains(out, "want one warning") {
		t.Errorf("the test of step 2 does not fail as the page says:\n%s", out)
	}
	edits[code] = behind(t, code, "is too old for locks", "\t}\n", warning)
	if out, passed := firstChange(t, edits); !passed {
		t.Errorf("the test of step 2 fails with the code of step 3:\n%s", out)
	}
}

// behind returns the text of a file with an addition. It comes behind the first line with a mark, and behind what follows up to
// and including end.
func behind(t *testing.T, path, mark, end, addition string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), mark)
	line, rest, _ := strings.Cut(rest, "\n")
	to, rest, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no line with %q", path, mark)
	}
	return before + mark + line + "\n" + to + end + addition + rest
}

// firstChange runs the test of the exercise with some files replaced. It returns the output, and whether the test has passed.
func firstChange(t *testing.T, edits map[string]string) (out string, passed bool) {
	t.Helper()
	dir, replace := t.TempDir(), make(map[string]string)
	for path, text := range edits {
		original, err := filepath.Abs(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		replace[original] = filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-count=1", "-run", "TestSetupIsInspected", "./tests/client")
	cmd.Dir = root
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}
