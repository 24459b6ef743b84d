package testkit

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// sysProcAttr makes the kernel kill a server when the test binary dies without
// running its cleanups, as at a -timeout or a Ctrl-C.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// reserve binds a port of 127.0.0.1, any for 0, to a socket that does not listen. With SO_REUSEADDR on both, Linux
// lets a server listen there all the same, and gives the port to nobody who asks for any.
func reserve(port int) (int, func(), error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	release := func() { _ = syscall.Close(fd) }
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	bound, nameErr := syscall.Getsockname(fd)
	if err == nil {
		err = nameErr
	}
	if err != nil {
		release()
		return 0, nil, os.NewSyscallError("bind", err)
	}
	return bound.(*syscall.SockaddrInet4).Port, release, nil
}

// awaitStop waits until a process to which SIGSTOP was sent has stopped.
func awaitStop(pid int) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Microsecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return err
		}
		// The state comes after the name, which stands in parentheses: proc_pid_stat(5).
		if _, state, found := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" ")); found && state[0] == 'T' {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop: %s", pid, stat)
		}
	}
}
