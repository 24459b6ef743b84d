package router

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// TestRoutersOwnTests runs the tests of Watermill's message package, in a copy whose routers have the guard.
func TestRoutersOwnTests(t *testing.T) {
	t.Parallel()
	dir := strings.TrimSpace(goCommand(t, nil, "list", "-m", "-f", "{{.Dir}}", "github.com/ThreeDotsLabs/watermill"))
	if dir == "" {
		t.Skip("Watermill is not downloaded")
	}
	copied := filepath.Join(t.TempDir(), "watermill")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(copied, func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o755) })
	tests := filepath.Join(copied, "message", "router_test.go")
	text, err := os.ReadFile(tests)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("message.NewRouter(")); n < 15 {
		t.Fatalf("the tests make %d routers", n)
	}
	write(t, tests, bytes.ReplaceAll(text, []byte("message.NewRouter("), []byte("guardedRouter(")))
	guarded, err := os.ReadFile("testdata/guarded.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(copied, "message", "guarded_test.go"), guarded)
	modfile := filepath.Join(t.TempDir(), "go.mod")
	for from, to := range map[string]string{"../go.mod": modfile, "../go.sum": strings.TrimSuffix(modfile, "mod") + "sum"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, text)
	}
	goCommand(t, nil, "mod", "edit", "-replace", "github.com/ThreeDotsLabs/watermill="+copied, modfile)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for module, folder := range map[string]string{"": "", "/examples/messages": "/examples/messages", "/msglock/watermill": "/msglock/watermill"} {
		goCommand(t, nil, "mod", "edit", "-replace", "github.com/holdfast-go/holdfast"+module+"="+root+folder, modfile)
	}
	locks := testkit.Start(t)
	out := goCommand(t, []string{"LOCKS_NETWORK=" + locks.Network(), "LOCKS_ADDR=" + locks.Addr()},
		"test", "-count=1", "-v", "-modfile", modfile, "github.com/ThreeDotsLabs/watermill/message")
	passed, skipped := strings.Count(out, "\n--- PASS"), strings.Count(out, "\n--- SKIP")
	t.Logf("%d tests have passed, %d were skipped", passed, skipped)
	if passed < 40 {
		t.Errorf("%d tests have passed:\n%s", passed, out)
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// goCommand returns what a command of Go prints.
func goCommand(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Env = append(os.Environ(), append(env, "GOWORK=off", "GOFLAGS=-mod=mod")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
