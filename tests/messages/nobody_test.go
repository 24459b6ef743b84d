package messages

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// nobody gives a folder to a user other than root, and returns that user. The folders above it have to be open to it.
func nobody(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		for above := filepath.Dir(dir); len(above) > len(os.TempDir()); above = filepath.Dir(above) {
			_ = os.Chmod(above, 0o755)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	t.Skip("PostgreSQL does not run as root, and there is no other user")
	return nil
}
