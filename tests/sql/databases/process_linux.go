package databases

import (
	"os"
	"syscall"
)

// endsWithParent makes the kernel end a server when the test ends without its cleanups, as at a timeout. SIGQUIT ends
// PostgreSQL and MariaDB with all their processes.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }

// inUserNamespace is endsWithParent for a process that keeps the rights of the user of the test to its files, but has
// other ids in its own eyes.
func inUserNamespace(seen *syscall.Credential) *syscall.SysProcAttr {
	attr := endsWithParent()
	attr.Cloneflags = syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(seen.Uid), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(seen.Gid), HostID: os.Getgid(), Size: 1}}
	return attr
}
