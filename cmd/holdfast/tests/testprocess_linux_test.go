package holdfast_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a program that a test has started. Why not exec.Cmd alone: its Wait may be called once only, but both the test
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
		if p.Process.Signal(syscall.SIGSTOP) == nil { // otherwise its number may be that of another process by now
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

// dump ends front and keeper, and returns what their goroutines were doing, and what they have written.
func (p *process) dump() string {
	processes := childrenOf(p.pid)
	text := fmt.Sprintf("front %d, below it %v\n", p.pid, processes)
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
