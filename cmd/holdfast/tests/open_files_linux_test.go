package holdfast_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestTooManyOpenFiles: beside what the Go runtime opens, the command has no file descriptor left for a connection. Its status is not
// that of a Redis that is away.
func TestTooManyOpenFiles(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	for most := 5; ; most++ {
		cmd := command(t, url, "show", "name")
		script := fmt.Sprintf(`ulimit -n %d; exec "$@"`, most)
		limited := exec.Command("/bin/sh", append([]string{"-c", script, "sh", cmd.Path}, cmd.Args[1:]...)...)
		limited.Env = cmd.Env
		got := finish(t, limited)
		if strings.HasPrefix(got.stderr, "runtime: ") {
			continue // too few for the runtime
		}
		if got.status != 71 || !strings.Contains(got.stderr, "too many open files") {
			t.Errorf("%d: status %d, %q", most, got.status, got.stderr)
		}
		return
	}
}
