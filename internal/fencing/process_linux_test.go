package fencing_test

import "syscall"

// endsWithParent makes the kernel end a server when the test ends without its cleanups, as at a timeout. SIGQUIT ends
// PostgreSQL and MariaDB with all their processes.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }
