package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// leavingReader returns a stream for a program, and a function that waits for a line with a text and then closes the reading
// end.
func leavingReader(t *testing.T) (stream *os.File, leave func(text string)) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return write, func(text string) {
		t.Helper()
		if got, err := bufio.NewReader(read).ReadString('\n'); !strings.Contains(got, text) {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
		_ = read.Close()
	}
}

// goneReader returns a stream that no process reads any more.
func goneReader(t *testing.T) *os.File {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = read.Close()
	t.Cleanup(func() { _ = write.Close() })
	return write
}

// TestReplayWithoutReader: with --replay a run goes on to its end, and is recorded in full, although the reader of its output
// or of its errors goes away, as head does.
func TestReplayWithoutReader(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for name, test := range map[string]struct {
		descriptor int
		redirect   func(cmd *exec.Cmd, stream *os.File)
	}{
		"output": {1, func(cmd *exec.Cmd, stream *os.File) { cmd.Stdout = stream }},
		"errors": {2, func(cmd *exec.Cmd, stream *os.File) { cmd.Stderr = stream }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := filepath.Join(t.TempDir(), "left")
			cmd := command(t, urlOf(srv), "once", name, "--replay", "-c", fmt.Sprintf(
				"exec >&%d; echo first; until [ -e %s ]; do sleep 0.02; done; echo second; echo third; exit 4", test.descriptor, left))
			stream, leave := leavingReader(t)
			test.redirect(cmd, stream)
			started := start(t, cmd)
			_ = stream.Close()
			leave("first")
			if err := os.WriteFile(left, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if status := awaitEnd(t, started); status != 4 {
				t.Errorf("status %d", status)
			}
			again := run(t, urlOf(srv), "once", name, "--replay", "--", "echo", "ran")
			if again.status != 4 || again.stdout+again.stderr != "first\nsecond\nthird\n" {
				t.Errorf("the record: %+v", again)
			}
		})
	}
}

// TestMessageWithoutReader: a message of the program that no process reads ends neither the command nor its orderly end.
func TestMessageWithoutReader(t *testing.T) {
	t.Parallel()
	// The library warns of this server whenever it connects.
	srv := redistest.Start(t, redistest.Config("maxmemory", "64mb"), redistest.Config("maxmemory-policy", "allkeys-lru"))
	warned := command(t, urlOf(srv), "exec", "-v", "a", "--", "sleep", "60")
	stream, leave := leavingReader(t)
	warned.Stderr = stream
	start(t, warned)
	_ = stream.Close()
	leave("Redis may evict locks")
	for name, test := range map[string]struct {
		args   []string
		status int
	}{
		"warning":        {[]string{"exec", "-v", "n", "-c", "sleep 1; exit 7"}, 7},
		"end of the run": {[]string{"exec", "--max-hold", "0.1", "n2", "-c", "trap 'exit 0' TERM; sleep 60 & wait"}, 79},
		"lead":           {[]string{"elect", "-v", "n3", "-c", "sleep 1; exit 7"}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, urlOf(srv), test.args...)
			cmd.Stderr = goneReader(t)
			if got := awaitEnd(t, start(t, cmd)); got != test.status {
				t.Errorf("status %d, want %d", got, test.status)
			}
		})
	}
}
