package holdfast_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// beginRecording starts a run that ends while Redis is down, and returns it when the program has failed to record its end.
func beginRecording(t *testing.T, srv *testkit.Server, flags ...string) (*process, string) {
	t.Helper()
	dir := t.TempDir()
	down, stderr := filepath.Join(dir, "down"), filepath.Join(dir, "stderr")
	args := append([]string{"once", "-v", "a", "-c", "until [ -e " + down + " ]; do sleep 0.02; done"}, flags...)
	cmd := command(t, urlOf(srv), args...)
	file, err := os.Create(stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	cmd.Stderr = file
	started := start(t, cmd)
	awaitCommand(t, started.pid)
	srv.Kill()
	if err := os.WriteFile(down, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, within, "a record that is not confirmed", func() bool {
		text, _ := os.ReadFile(stderr)
		return strings.Contains(string(text), "not recorded yet")
	})
	return started, stderr
}

// TestOnceRecordsAfterOutage: a run that ends while Redis is down is recorded when Redis is back. So no call repeats it, with
// --retry either, and no operator has to find out.
func TestOnceRecordsAfterOutage(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--retry"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			srv := testkit.Start(t, testkit.AOF())
			started, stderr := beginRecording(t, srv, flags...)
			srv.Restart()
			if status := awaitEnd(t, started); status != 0 {
				text, _ := os.ReadFile(stderr)
				t.Errorf("status %d, %s", status, text)
			}
			again := run(t, urlOf(srv), append([]string{"once", "a", "-c", "echo ran"}, flags...)...)
			if again != (result{}) {
				t.Errorf("the next call: %+v", again)
			}
		})
	}
}

// TestOnceRecordingInterrupted: a signal ends the program although Redis does not come back, and the error says what was
// not recorded.
func TestOnceRecordingInterrupted(t *testing.T) {
	t.Parallel()
	started, stderr := beginRecording(t, testkit.Start(t))
	send(syscall.SIGTERM, started.pid)
	if status := awaitEnd(t, started); status != 69 {
		t.Errorf("status %d", status)
	}
	if text, _ := os.ReadFile(stderr); !strings.Contains(string(text), "the command has ended with 0, but that was not recorded") {
		t.Errorf("it says %q", text)
	}
}
