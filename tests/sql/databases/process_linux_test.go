package databases

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestHost: a server never runs as root in its own eyes, can write to its directory, and ends with the thread that
// started it, also below a directory that only root can enter.
func TestHost(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root needs another user to run a server")
	}
	for name, test := range map[string]struct {
		mode  os.FileMode
		owner uint32 // of the files that the server writes
	}{
		"open directory":   {0o755, findUser(t, "nobody").Uid},
		"closed directory": {0o700, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "holdfast") // t.TempDir is below a directory of its own mode
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			program := filepath.Join(dir, "program")
			const text = "#!/bin/sh\ncase $1 in --wait) exec cat;; *) id -u >id;; esac\n"
			if err := errors.Join(os.WriteFile(program, []byte(text), 0o755), os.Chmod(dir, test.mode)); err != nil {
				t.Fatal(err)
			}
			h := newHost(t, program)
			if test.owner != 0 && h.attr().Credential == nil {
				t.Skip("no other user can enter the directory of temporary files")
			}
			h.run(t, program)
			id, err := os.ReadFile(h.path("id"))
			if want := strconv.Itoa(int(findUser(t, "nobody").Uid)); err != nil || strings.TrimSpace(string(id)) != want {
				t.Errorf("the server has the user id %q, %v, want %s", id, err, want)
			}
			info, err := os.Stat(h.path("id"))
			if err != nil {
				t.Fatal(err)
			}
			if owner := info.Sys().(*syscall.Stat_t).Uid; owner != test.owner {
				t.Errorf("its files belong to %d, want %d", owner, test.owner)
			}
			endsWithThread(t, h.command(program, "--wait"))
		})
	}
}

// endsWithThread starts a program on a thread that ends then, and waits for the program's end by SIGQUIT.
func endsWithThread(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	started := make(chan error)
	var start func()
	start = func() {
		runtime.LockOSThread() // without an unlock, the thread ends with the goroutine
		if syscall.Gettid() != syscall.Getpid() {
			started <- cmd.Start()
			return
		}
		go start() // the first thread of a process does not end; while it is locked, this is another one
		<-t.Context().Done()
		runtime.UnlockOSThread()
	}
	go start()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGQUIT {
		t.Errorf("the program ended with %v, want SIGQUIT", err)
	}
}
