package holdfast_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

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

// processes are those of one run of the program.
type processes struct{ front, keeper, command int }

// processesOf returns those of a front whose command runs, or false.
func processesOf(front int) (p processes, running bool) {
	p.front = front
	if keepers := childrenOf(front); len(keepers) == 1 {
		p.keeper = keepers[0]
		if commands := childrenOf(p.keeper); len(commands) > 0 {
			p.command = commands[0]
		}
	}
	return p, p.command != 0 && nameOf(p.command) != nameOf(p.keeper)
}

// nameOf returns the name of a process, empty if it is gone.
func nameOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(text))
}

// awaitCommand waits until the program runs its command.
func awaitCommand(t testing.TB, front int) (p processes) {
	t.Helper()
	testkit.Eventually(t, within, "the command to run", func() (running bool) {
		p, running = processesOf(front)
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
