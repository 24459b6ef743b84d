package testkit

import (
	"os"
	"syscall"
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
