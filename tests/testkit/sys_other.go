//go:build !linux

package testkit

import (
	"fmt"
	"net"
	"syscall"
)

// sysProcAttr asks for nothing: only Linux can kill the children of a process
// that dies, so elsewhere servers may outlive a killed test binary.
func sysProcAttr() *syscall.SysProcAttr { return nil }

// reserve finds a free port of 127.0.0.1, any for 0. Only Linux can keep it for a server.
func reserve(port int) (int, func(), error) {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return 0, nil, err
	}
	return ln.Addr().(*net.TCPAddr).Port, func() {}, ln.Close()
}

// awaitStop does not wait: only Linux tells the state of a process in a file.
func awaitStop(int) error { return nil }
