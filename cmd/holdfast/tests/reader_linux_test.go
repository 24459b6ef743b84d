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

	"github.com/holdfast-go/holdfast/tests/testkit"
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

// awaitGone closes the peer of a stream, and returns the stream once the kernel knows that no process has the peer. Why: a
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

// TestReplayGoneReader: with --replay a run has its own status, and is recorded in full, although no process reads its output
// and its errors. So has a call that prints the record.
func TestReplayGoneReader(t *testing.T) {
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

// TestReplayWithoutReader: with --replay a run goes on to its end, and is recorded in full, although the reader of its output
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
