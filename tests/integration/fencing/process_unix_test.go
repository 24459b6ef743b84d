//go:build unix

package fencing_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// find returns the path of the first program that exists: in PATH, in the directories where only administrators look,
// or in those that match the patterns. Without one the test cannot go on.
func find(t *testing.T, name string, patterns ...string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, pattern := range append([]string{"/usr/sbin", "/usr/local/sbin"}, patterns...) {
		paths, _ := filepath.Glob(filepath.Join(pattern, name))
		for _, path := range slices.Backward(paths) { // the newest version
			return path
		}
	}
	cannot(t, "%s is not installed; on Debian: make databases", name)
	return ""
}

// cannot skips a test whose database server cannot be had on this machine, or fails it with HOLDFAST_DATABASES=required.
func cannot(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("HOLDFAST_DATABASES") == "required" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// A host is a temporary directory and the way to start processes that work in it.
type host struct {
	dir  string
	attr func() *syscall.SysProcAttr
}

// newHost makes a directory that is removed when the test ends, for processes that can execute the program. For root
// they run as another user, the first of these that exists, because database servers refuse to run as root. Where that
// user cannot execute the program, as below a directory that only root can enter, they run as root in a user namespace
// that gives root the id of that user. The test is skipped where neither is possible. The path is short, because those
// of unix sockets are limited.
func newHost(t *testing.T, program string, users ...string) host {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	h := host{dir, endsWithParent}
	if os.Getuid() != 0 {
		return h
	}
	other := findUser(t, append(users, "nobody")...)
	h.attr = func() *syscall.SysProcAttr {
		attr := endsWithParent()
		attr.Credential = other
		return attr
	}
	userErr := os.Chown(dir, int(other.Uid), int(other.Gid))
	if userErr == nil {
		userErr = h.command(program, "--version").Run()
	}
	if userErr == nil {
		return h
	}
	if err := os.Chown(dir, 0, 0); err != nil {
		t.Fatal(err)
	}
	namespaceErr := errors.ErrUnsupported
	if inUserNamespace(other) != nil {
		h.attr = func() *syscall.SysProcAttr { return inUserNamespace(other) }
		namespaceErr = h.command(program, "--version").Run()
	}
	if exit := new(exec.ExitError); errors.As(namespaceErr, &exit) {
		t.Fatalf("%s --version: %v", program, namespaceErr)
	}
	if namespaceErr != nil {
		cannot(t, "the server may not run as root; as user %d: %v; in a user namespace: %v", other.Uid, userErr, namespaceErr)
	}
	return h
}

// findUser returns the first of these users that exists. It skips the test if there is none.
func findUser(t *testing.T, names ...string) *syscall.Credential {
	t.Helper()
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			t.Fatal(err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	cannot(t, "root may not run the server, and there is no other user for it")
	return nil
}

func (h host) path(name string) string { return filepath.Join(h.dir, name) }

func (h host) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = h.dir
	cmd.SysProcAttr = h.attr()
	return cmd
}

// run runs a program to its end.
func (h host) run(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := h.command(program, args...).CombinedOutput(); err != nil {
		cannot(t, "%s: %v\n%s", program, err, out)
	}
}

// start runs a server until the test ends. The signal stop must end it and its children. It returns when ready
// returns nil.
func (h host) start(t *testing.T, stop os.Signal, ready func() error, program string, args ...string) {
	t.Helper()
	log, err := os.Create(h.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := h.command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	started, ended := make(chan error, 1), make(chan struct{})
	go func() { // the kernel sends the signal of endsWithParent when the thread ends that started the process
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(stop) // an error means that the server has ended
		<-ended
	})
	if err := await(ready, ended); err != nil {
		text, _ := os.ReadFile(h.path("log"))
		cannot(t, "%s does not answer: %v\n%s", program, err, text)
	}
}

// await returns when ready returns nil, and an error when the server has ended or a minute has passed.
func await(ready func() error, ended <-chan struct{}) error {
	for deadline := time.Now().Add(time.Minute); ; {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("it has ended: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}
