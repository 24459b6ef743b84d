package testkit_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Servers must not outlive a test binary that is killed.
func TestServersDieWithTheTestBinary(t *testing.T) {
	const child = "HOLDFAST_TEST_ORPHAN"
	if os.Getenv(child) != "" {
		srv := testkit.Start(t)
		fmt.Println("server", srv.Info("server", "process_id"), srv.Addr())
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServersDieWithTheTestBinary$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, _ := cmd.Output() // the error is that it was killed
	var pid int
	var addr string
	if _, err := fmt.Sscanf(string(out), "server %d %s", &pid, &addr); err != nil {
		t.Fatalf("child's output %q: %v", out, err)
	}
	defer os.RemoveAll(filepath.Dir(addr))
	testkit.Eventually(t, patience, "the server is gone", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		_, state, _ := strings.Cut(string(bytes.TrimSpace(status)), ") ")
		return strings.HasPrefix(state, "Z") // dead, nobody waits for it
	})
}
