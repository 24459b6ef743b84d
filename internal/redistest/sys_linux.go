package redistest

import "syscall"

// sysProcAttr makes the kernel kill a server when the test binary dies without
// running its cleanups, as at a -timeout or a Ctrl-C.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
