package topology

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed shim.c.txt
var shim []byte

// Shift is by how much the wall clock of a server is off. It can be changed while the server runs.
type Shift struct {
	path string
	by   time.Duration
}

// newShift makes servers that are started from now on follow it, until the test ends. They are started by a script that
// puts the shim in front of the C library: libfaketime, which does the same, hangs with redis-server.
func newShift(t testing.TB) *Shift {
	t.Helper()
	server := os.Getenv("HOLDFAST_REDIS_SERVER")
	if server == "" {
		server = "redis-server"
	}
	server, err := exec.LookPath(server)
	if err != nil {
		t.Fatalf("no Redis server: %v", err)
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "shim.c"), filepath.Join(dir, "shim.so")
	s := &Shift{path: filepath.Join(dir, "shift")}
	script := filepath.Join(dir, "server")
	text := fmt.Sprintf("#!/bin/sh\nexport HOLDFAST_FAULTS_SHIFT=%q LD_PRELOAD=%q\nexec %q \"$@\"\n", s.path, library, server)
	for _, file := range []struct {
		path string
		data []byte
		mode os.FileMode
	}{{source, shim, 0o600}, {s.path, make([]byte, 8), 0o600}, {script, []byte(text), 0o700}} {
		if err := os.WriteFile(file.path, file.data, file.mode); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	t.Setenv("HOLDFAST_REDIS_SERVER", script)
	return s
}

// Set shifts the clock by so much from the true one.
func (s *Shift) Set(by time.Duration) error {
	f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(by)), 0)
	s.by = by
	return err
}

// By returns the present shift.
func (s *Shift) By() time.Duration { return s.by }
