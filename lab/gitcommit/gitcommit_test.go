package gitcommit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-go/holdfast/lab/gitcommit"
)

func TestHead(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Chdir(t.TempDir())
	if head := gitcommit.Head(); head != "unknown" {
		t.Errorf("outside of a repository: %q", head)
	}
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(".", "file"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	write("one")
	git("add", "file")
	git("commit", "-q", "-m", "one")
	git("tag", "-a", "v1", "-m", "v1")
	if head := gitcommit.Head(); !regexp.MustCompile(`^[0-9a-f]{7,}$`).MatchString(head) {
		t.Errorf("clean: %q", head)
	}
	write("two")
	if head := gitcommit.Head(); !regexp.MustCompile(`^[0-9a-f]{7,}-dirty$`).MatchString(head) {
		t.Errorf("changed: %q", head)
	}
}
