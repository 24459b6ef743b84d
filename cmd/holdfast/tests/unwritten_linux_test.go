package holdfast_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// fullDisk returns a stream that cannot be written, as a file on a full disk.
func fullDisk(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// finishFull executes a command whose output cannot be written, and returns its status and its messages.
func finishFull(t *testing.T, cmd *exec.Cmd) (int, string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = fullDisk(t), &stderr
	return awaitEnd(t, start(t, cmd)), stderr.String()
}

// noSpace is the message for standard output that cannot be written.
const noSpace = "holdfast: the output is incomplete: write /dev/stdout: no space left on device\n"

// TestReplayUnwritten: with --replay a run whose output cannot be written is recorded in full, and the call fails. So does a
// call that prints the record. The status of a command that has failed stays.
func TestReplayUnwritten(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	for script, status := range map[string]int{"seq 30000": 74, "seq 30000; exit 4": 4} {
		args := []string{"once", script, "--replay", "--max-output", "1000000", "-c", script}
		for _, call := range []string{"run", "replay"} {
			if got, text := finishFull(t, command(t, url, args...)); got != status || text != noSpace {
				t.Errorf("%s of %q: status %d, %q", call, script, got, text)
			}
		}
		again := run(t, url, args...)
		if again.status != status%74 || !strings.HasSuffix(again.stdout, "\n29999\n30000\n") || again.stderr != "" {
			t.Errorf("the record of %q: status %d, %d bytes, %q", script, again.status, len(again.stdout), again.stderr)
		}
	}
	for _, call := range []string{"run", "replay"} {
		cmd := command(t, url, "once", "errors", "--replay", "-c", "echo out; echo err >&2")
		var stdout bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, fullDisk(t)
		if got := awaitEnd(t, start(t, cmd)); got != 74 || stdout.String() != "out\n" {
			t.Errorf("%s without standard error: status %d, %q", call, got, stdout.String())
		}
	}
}

// TestReplayUnwrittenFile: a limit of the size of files counts as a full disk.
func TestReplayUnwrittenFile(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	file := filepath.Join(t.TempDir(), "out")
	program := command(t, url)
	limited := exec.Command("bash", "-c", `ulimit -f 8; exec "$0" once a --replay -- seq 30000 >`+file, program.Path)
	limited.Env = program.Env
	finish(t, limited).want(t, 74, "", "the output is incomplete: write /dev/stdout: file too large")
	if written, err := os.ReadFile(file); err != nil || len(written) != 8<<10 {
		t.Errorf("%d bytes, %v", len(written), err)
	}
	run(t, url, "once", "a", "--replay", "--", "true").want(t, 0, "\n10000\n", "more output")
}

// prepareNames returns a server with a lock and a record, and the commands that print, for people and in JSON.
func prepareNames(t *testing.T) (url string, commands [][]string) {
	t.Helper()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	if _, err := locks.Fair("n").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, urlOf(srv), "once", "k", "--", "true").want(t, 0, "", "")
	return urlOf(srv), [][]string{
		{"ls"},
		{"show", "n"},
		{"watch", "n"},
		{"records"},
		{"digest", locks.Digest("n")},
		{"digest", "--of", "n"},
		{"http-key", "POST", "/orders"},
		{"cron", "ls"},
		{"ls", "--json"},
		{"show", "n", "--json"},
		{"watch", "n", "--json"},
		{"records", "--json"},
		{"completion", "bash"},
		{"completion", "zsh"},
		{"completion", "fish"},
		{"man"},
		{"--help"},
		{"--version"},
		{"ls", "--help"},
	}
}

// TestPrintUnwritten: a command that prints fails if that cannot be written, and says why.
func TestPrintUnwritten(t *testing.T) {
	t.Parallel()
	url, commands := prepareNames(t)
	for _, args := range commands {
		if status, text := finishFull(t, command(t, url, args...)); status != 74 || text != noSpace {
			t.Errorf("%v: status %d, %q", args, status, text)
		}
	}
}

// TestPrintInputOutputError: EIO of a file that is no terminal is a failure, as on a disk with a defect.
func TestPrintInputOutputError(t *testing.T) {
	t.Parallel()
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0) // at its beginning is no memory: a write fails with EIO
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = memory.Close() })
	cmd := command(t, "", "--version")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = memory, &stderr
	const text = "holdfast: the output is incomplete: write /dev/stdout: input/output error\n"
	if status := awaitEnd(t, start(t, cmd)); status != 74 || stderr.String() != text {
		t.Errorf("status %d, %q", status, &stderr)
	}
}

// TestPrintWithoutReader: a command that prints ends silently with the status of PIPE if no process reads it, even if its
// caller ignores PIPE.
func TestPrintWithoutReader(t *testing.T) {
	t.Parallel()
	url, commands := prepareNames(t)
	for name, open := range goneReaders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range commands {
				program := command(t, url, args...)
				ignoring := exec.Command("sh", append([]string{"-c", `trap '' PIPE; exec "$0" "$@"`, program.Path}, args...)...)
				ignoring.Env = program.Env
				for _, cmd := range []*exec.Cmd{program, ignoring} {
					var stderr bytes.Buffer
					cmd.Stdout, cmd.Stderr = open(t), &stderr
					if status := awaitEnd(t, start(t, cmd)); status != 141 || stderr.Len() > 0 {
						t.Errorf("%v: status %d, %q", cmd.Args, status, &stderr)
					}
				}
			}
		})
	}
}

// TestUnlockUnwritten: a lock is taken away although the answer in JSON cannot be written.
func TestUnlockUnwritten(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	if _, err := locks.Mutex("n").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, text := finishFull(t, command(t, urlOf(srv), "unlock", "n", "--yes", "--json")); status != 74 || text != noSpace {
		t.Errorf("status %d, %q", status, text)
	}
	if info, err := locks.Inspect(t.Context(), "n"); err != nil || info.Mode != "" {
		t.Errorf("%+v, %v", info, err)
	}
}
