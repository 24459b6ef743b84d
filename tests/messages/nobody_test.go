package messages

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// notRoot returns how PostgreSQL is started, which refuses to run as root, and opens the folders to it. For root it runs as another
// user. Where that user cannot execute it, as below a closed folder, it runs in a user namespace, in which root has another id.
func notRoot(t *testing.T, initdb string, dirs ...string) func() *syscall.SysProcAttr {
	t.Helper()
	as := func(other *syscall.Credential) func() *syscall.SysProcAttr {
		return func() *syscall.SysProcAttr {
			return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: other}
		}
	}
	if os.Getuid() != 0 {
		return as(nil)
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		other := as(&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)})
		if errors.Is(try(initdb, other), fs.ErrPermission) {
			other = func() *syscall.SysProcAttr {
				return &syscall.SysProcAttr{
					Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWUSER,
					UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, Size: 1}},
				}
			}
			if err := try(initdb, other); err != nil {
				t.Skipf("neither %s nor a user namespace can execute PostgreSQL: %v", name, err)
			}
			return other
		}
		for _, dir := range dirs {
			if err := os.Chown(dir, uid, gid); err != nil {
				t.Fatal(err)
			}
			for above := filepath.Dir(dir); len(above) > len(os.TempDir()); above = filepath.Dir(above) {
				_ = os.Chmod(above, 0o755)
			}
		}
		return other
	}
	t.Skip("PostgreSQL does not run as root, and there is no other user")
	return nil
}

// try returns why a program cannot be executed.
func try(program string, process func() *syscall.SysProcAttr) error {
	cmd := exec.Command(program, "--version")
	cmd.SysProcAttr = process()
	return cmd.Run()
}
