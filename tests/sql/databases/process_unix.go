//go:build unix

package databases

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
// or in those that match the patterns. Without one the test cannot continue.
func find(t testing.TB, name string, patterns ...string) string {
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
func cannot(t testing.TB, format string, args ...any) {
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
func newHost(t testing.TB, program string, users ...string) host {
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
func findUser(t testing.TB, names ...string) *syscall.Credential {
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
func (h host) run(t testing.TB, program string, args ...string) {
	t.Helper()
	if out, err := h.command(program, args...).CombinedOutput(); err != nil {
		cannot(t, "%s: %v\n%s", program, err, out)
	}
}

// A process is a server that runs until the test ends, and can be killed and started again before.
type process struct {
	t     testing.TB
	host  host
	stop  os.Signal // ends it and its children
	ready func() error
	args  []string

	cmd   *exec.Cmd
	ended chan struct{}
}

// start runs a server until the test ends. The signal stop must end it and its children. It returns when ready
// returns nil.
func (h host) start(t testing.TB, stop os.Signal, ready func() error, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, host: h, stop: stop, ready: ready, args: append([]string{program}, args...)}
	t.Cleanup(func() { p.end(p.stop) })
	p.start()
	return p
}

// start starts the server, or starts it again.
func (p *process) start() {
	p.t.Helper()
	log, err := os.OpenFile(p.host.path("log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd := p.host.command(p.args[0], p.args[1:]...)
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
		p.t.Fatal(err)
	}
	p.cmd, p.ended = cmd, ended
	if err := await(p.ready, ended); err != nil {
		text, _ := os.ReadFile(p.host.path("log"))
		cannot(p.t, "%s does not answer: %v\n%s", p.args[0], err, text)
	}
}

// end ends the server by a signal.
func (p *process) end(by os.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(by) // an error means that it has ended
	<-p.ended
	p.cmd = nil
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
