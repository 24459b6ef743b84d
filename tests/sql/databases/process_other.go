//go:build unix && !linux

package databases

import "syscall"

// endsWithParent asks for nothing: only Linux can end the children of a process that ends.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// inUserNamespace returns nil: only Linux has user namespaces.
func inUserNamespace(*syscall.Credential) *syscall.SysProcAttr { return nil }
