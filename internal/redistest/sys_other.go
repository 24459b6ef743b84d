//go:build !linux

package redistest

import "syscall"

// sysProcAttr asks for nothing: only Linux can kill the children of a process
// that dies, so elsewhere servers may outlive a killed test binary.
func sysProcAttr() *syscall.SysProcAttr { return nil }
