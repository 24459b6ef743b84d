package supervise

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervisorName is the first word of the supervisor's command line.
const supervisorName = "holdfast-superv"

// program returns the path with which the parent starts the supervisor.
func program() (string, error) { return os.Executable() }

// rename does nothing: the first word of the command line is the name.
func rename(string) {}

// becomeSubreaper does nothing here: descendants whose parent has ended are not found.
func becomeSubreaper() error { return nil }

// attributes returns the attributes of the command. If the supervisor is killed, the parent kills the command.
func attributes() *syscall.SysProcAttr { return new(syscall.SysProcAttr) }

// newPageFile returns a file of one page, without a name.
func newPageFile() (*os.File, error) {
	file, err := os.CreateTemp("", "holdfast")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name())
	return file, file.Truncate(int64(os.Getpagesize()))
}

// allParents returns the parent of each process of the host.
func allParents() map[int]int {
	processes, _ := unix.SysctlKinfoProcSlice("kern.proc.all")
	parents := make(map[int]int, len(processes))
	for _, p := range processes {
		parents[int(p.Proc.P_pid)] = int(p.Eproc.Ppid)
	}
	return parents
}

// children returns the children of a process.
func children(pid int) []int { return byParent(allParents())(pid) }

// descendants returns the processes below this one whose parents all live, parents first, without those in except and
// below them.
func descendants(except map[int]bool) []int {
	return tree(os.Getpid(), except, byParent(allParents()))
}

// isStopped reports whether a process is stopped at this moment.
func isStopped(pid int) bool {
	const stopped = 4 // SSTOP
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && p.Proc.P_stat == stopped
}
