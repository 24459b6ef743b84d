package holdfast_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestDescriptors: the command has the descriptors of the caller under their numbers, and none of the program's.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(write, "from descriptor 3"); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	const list = "ls /proc/$$/fd"
	plain, cmd := exec.Command("sh", "-c", list), command(t, url, "exec", "n", "-c", "cat <&3; "+list)
	plain.ExtraFiles, cmd.ExtraFiles = []*os.File{read}, []*os.File{read}
	want := "from descriptor 3" + finish(t, plain).stdout
	if got := finish(t, cmd); got.stdout != want {
		t.Errorf("%+v, want %q", got, want)
	}
	_ = read.Close()
}

// TestFewDescriptors: it works below a low limit of descriptors, or says which limit is too low.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	program := command(t, urlOf(testkit.Start(t)), "exec", "n", "--", "echo", "ran")
	below := func(limit string) result {
		under := exec.Command("sh", append([]string{"-c", "ulimit -n " + limit + `; exec "$0" "$@"`, program.Path}, program.Args[1:]...)...)
		under.Env = program.Env
		return finish(t, under)
	}
	below("64").want(t, 0, "ran", "")
	below("32").want(t, 0, "ran", "")
	if got := below("8"); got.status == 0 || strings.Contains(got.stderr, "invalid argument") {
		t.Errorf("%+v", got)
	}
}

// TestClosedInput: it works with closed descriptors, as a daemon may start it.
func TestClosedInput(t *testing.T) {
	t.Parallel()
	program := command(t, urlOf(testkit.Start(t)), "exec", "n", "-c", "cat; exit 5")
	under := exec.Command("sh", append([]string{"-c", `exec setsid -w "$0" "$@" <&- >&- 2>&-`, program.Path}, program.Args[1:]...)...)
	under.Env = program.Env
	finish(t, under).want(t, 5, "", "")
}

// TestTooManyOpenFiles: beside what the Go runtime opens, the command has no file descriptor left for a connection. Its status is not
// the text about an unreachable Redis.
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

// goneReader returns a pipe that no process reads any more.
func goneReader(t *testing.T) *os.File {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return awaitGone(t, write, read)
}

// closedTerminal returns a terminal whose other end has closed.
func closedTerminal(t *testing.T) *os.File {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	return awaitGone(t, tty, master)
}

// resetSocket returns a TCP connection that its peer has reset.
func resetSocket(t *testing.T) *os.File {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	file, err := conn.(*net.TCPConn).File()
	if err == nil {
		err = peer.(*net.TCPConn).SetLinger(0) // Close sends a reset
	}
	if err != nil {
		t.Fatal(err)
	}
	return awaitGone(t, file, peer)
}

// awaitGone closes the peer of a stream, and returns the stream once no process has the peer any more. A
// process that another test starts has it too, until it executes its program.
func awaitGone(t *testing.T, stream *os.File, peer io.Closer) *os.File {
	t.Helper()
	t.Cleanup(func() { _ = stream.Close() })
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, within, "the peer to be gone", func() bool {
		events := []unix.PollFd{{Fd: int32(stream.Fd())}}
		n, err := unix.Poll(events, 0)
		return err == nil && n == 1 && events[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return stream
}

// goneReaders are the streams that no process reads any more.
var goneReaders = map[string]func(*testing.T) *os.File{"pipe": goneReader, "terminal": closedTerminal, "socket": resetSocket}

// TestReplayToDisconnectedReader: with --replay a run has its own status, and is recorded in full, although no process
// reads its output and its errors. So has a call that prints the record.
func TestReplayToDisconnectedReader(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	for name, open := range goneReaders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{0, 4} {
				args := []string{"once", fmt.Sprint(name, status), "--replay", "-c", fmt.Sprintf("echo out; echo err >&2; exit %d", status)}
				for _, call := range []string{"run", "replay"} {
					cmd := command(t, url, args...)
					var stderr bytes.Buffer
					cmd.Stdout, cmd.Stderr = open(t), &stderr
					if got := awaitEnd(t, start(t, cmd)); got != status || stderr.String() != "err\n" {
						t.Errorf("%s without output: status %d, %q", call, got, &stderr)
					}
					cmd = command(t, url, args...)
					var stdout bytes.Buffer
					cmd.Stdout, cmd.Stderr = &stdout, open(t)
					if got := awaitEnd(t, start(t, cmd)); got != status || stdout.String() != "out\n" {
						t.Errorf("%s without errors: status %d, %q", call, got, &stdout)
					}
				}
				run(t, url, args...).want(t, status, "out\n", "err\n")
			}
		})
	}
}

// TestReplayWithoutReader: with --replay a run continues to its end, and is recorded in full, although the reader of its output
// or of its errors goes away, as head does.
func TestReplayWithoutReader(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
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
	srv := testkit.Start(t, testkit.Config("maxmemory", "64mb"), testkit.Config("maxmemory-policy", "allkeys-lru"))
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
		{"digest", seal.NamesOf(locks).Digest("n", false)},
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

// TestUnlockUnwritten: a lock is force-released although the answer in JSON cannot be written.
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
