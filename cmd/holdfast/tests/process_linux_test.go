package holdfast_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// process is a program that a test has started. It wraps exec.Cmd because Wait may be called only once, but both the test
// and its cleanup wait.
type process struct {
	*exec.Cmd
	pid  int
	wait func() // returns when the program has ended, and all of its output was read
}

// start starts a program that is killed with all that it has started when the test ends.
func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	if cmd.Stderr == nil {
		errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errs.Close() })
		cmd.Stderr = errs
	}
	cmd.Env = append(cmd.Environ(), "GOTRACEBACK=all") // for dump
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, cmd.Process.Pid, sync.OnceFunc(func() { _ = cmd.Wait() })}
	t.Cleanup(func() {
		if p.Process.Signal(syscall.SIGSTOP) == nil { // otherwise its number may belong to another process by now
			killAll(p.pid)
		}
		p.wait()
	})
	return p
}

// awaitEnd waits for a program, and returns its exit status, 128 and its number for a signal.
func awaitEnd(t testing.TB, p *process) int {
	t.Helper()
	if !p.ends(within) {
		t.Fatalf("%v has not ended\n%s", p.Args, p.dump())
	}
	status := p.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// ends reports whether the program ends in time.
func (p *process) ends(timeout time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		p.wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(timeout):
		return false
	}
}

// dump ends parent and supervisor, and returns what their goroutines were doing, and what they have written.
func (p *process) dump() string {
	processes := childrenOf(p.pid)
	text := fmt.Sprintf("parent %d, below it %v\n", p.pid, processes)
	for _, pid := range append(processes, p.pid) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "Name:") || strings.HasPrefix(line, "State:") || strings.HasPrefix(line, "Sig") {
				text += line
			}
		}
		send(syscall.SIGABRT, pid)
	}
	if !p.ends(within) {
		return text + "it has not ended of ABRT"
	}
	switch errs := p.Stderr.(type) {
	case *os.File:
		written, _ := os.ReadFile(errs.Name())
		return text + string(written)
	case fmt.Stringer:
		return text + errs.String()
	}
	return text
}

// overlapStatus is the exit status of a command that has found another one running.
const overlapStatus = 33

// childrenOf returns the children of a process.
func childrenOf(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// processes are the processes of one run of the program.
type processes struct{ parent, supervisor, command int }

// processesOf returns the processes of a parent whose command runs, or false.
func processesOf(parent int) (p processes, running bool) {
	p.parent = parent
	if supervisors := childrenOf(parent); len(supervisors) == 1 {
		p.supervisor = supervisors[0]
		if commands := childrenOf(p.supervisor); len(commands) > 0 {
			p.command = commands[0]
		}
	}
	return p, p.command != 0 && nameOf(p.command) != nameOf(p.supervisor)
}

// nameOf returns the name of a process, empty if it is gone.
func nameOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(text))
}

// awaitCommand waits until the program runs its command.
func awaitCommand(t testing.TB, parent int) (p processes) {
	t.Helper()
	testkit.Eventually(t, within, "the command to run", func() (running bool) {
		p, running = processesOf(parent)
		return running
	})
	return p
}

// send sends a signal to processes, of which some may be gone.
func send(sig syscall.Signal, pids ...int) {
	for _, pid := range pids {
		if pid > 1 {
			_ = syscall.Kill(pid, sig)
		}
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

// killAll kills a process and all below it.
func killAll(pid int) {
	send(syscall.SIGSTOP, pid) // it starts no more
	for _, child := range childrenOf(pid) {
		killAll(child)
	}
	send(syscall.SIGKILL, pid)
}

func readPids(path string) (pids []int) {
	text, _ := os.ReadFile(path)
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// awaitPlaces waits until so many wait in the queue of the lock "n".
func awaitPlaces(t *testing.T, srv *testkit.Server, n int) {
	t.Helper()
	awaitPlacesOf(t, srv, "n", n)
}

func awaitPlacesOf(t *testing.T, srv *testkit.Server, name string, n int) {
	t.Helper()
	locks := newLocks(t, srv)
	testkit.Eventually(t, within, fmt.Sprintf("%d waiters", n), func() bool {
		info, err := locks.Inspect(t.Context(), name)
		return err == nil && info.Places == n
	})
}
