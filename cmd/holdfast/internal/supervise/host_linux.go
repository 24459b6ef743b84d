package supervise

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervisorName is the name of the supervisor in lists of processes, of 15 bytes at most. It differs from the parent's name, so
// that "pkill -x holdfast" ends the parent only.
const supervisorName = "holdfast-superv"

// program returns the path with which the parent starts the supervisor: the same file, even if it was replaced meanwhile.
func program() (string, error) { return "/proc/self/exe", nil }

// rename sets the name of this process in lists of processes.
func rename(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
}

// becomeSubreaper makes this process the parent of all orphans among its descendants.
func becomeSubreaper() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// attributes returns the attributes of the command: the kernel kills it if the thread that has started it ends.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// newPageFile returns a file of one page in memory, without a name.
func newPageFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("holdfast", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "page")
	return file, file.Truncate(int64(os.Getpagesize()))
}

// listed returns the children of a process that the kernel lists, none if the process is gone. It returns false if the
// kernel has no such lists (CONFIG_PROC_CHILDREN).
func listed(pid int) (children []int, known bool) {
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
	for _, thread := range threads {
		text, err := os.ReadFile(thread + "/children")
		if err != nil {
			if _, err := os.Stat(thread); err == nil {
				return nil, false
			}
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, true
}

// children returns the children of a process.
func children(pid int) []int {
	if all, known := listed(pid); known {
		return all
	}
	return byParent(allParents())(pid)
}

// descendants returns all processes below this one, parents first, without those in except and below them.
func descendants(except map[int]bool) []int {
	self := os.Getpid()
	if _, known := listed(self); known {
		return tree(self, except, children)
	}
	return tree(self, except, byParent(allParents()))
}

// allParents returns the parent of each process of the host.
func allParents() map[int]int {
	parents := make(map[int]int)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil {
			if fields := statOf(pid); fields != nil {
				parents[pid], _ = strconv.Atoi(fields[1])
			}
		}
	}
	return parents
}

// statOf returns the fields of /proc/PID/stat from the third on, the state, or nil if the process is gone.
func statOf(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// The second field is the name in parentheses, which may contain blanks and parentheses.
	if fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])); len(fields) > 2 {
		return fields
	}
	return nil
}

// isStopped reports whether a process is stopped at this moment.
func isStopped(pid int) bool {
	fields := statOf(pid)
	return fields != nil && fields[0] == "T"
}
