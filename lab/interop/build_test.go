//go:build unix

package interop_test

import (
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	asked    = flag.Bool("interop", false, "test against a real Redisson, with java and mvn")
	redisson = flag.String("redisson", "4.7.0,3.52.0", "versions of Redisson, the first for tests that take only one")
	contest  = flag.Duration("contest", 10*time.Second, "how long processes contend for a lock")
	watch    = flag.Duration("watch", 10*time.Second, "how long Go and Java alternate while each renews its locks")
	speed    = flag.Duration("speed", 0, "how long each measurement of speed takes; 0: none is made")
)

// versions are the versions of Redisson to be tested with. The test is skipped if it was not asked for, or cannot be done.
func versions(t *testing.T) []string {
	t.Helper()
	if !*asked {
		t.Skip("it needs java, mvn and time: make -C lab interop")
	}
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s in PATH: nothing was tested against Redisson", program)
		}
	}
	return strings.Split(*redisson, ",")
}

// builds are the Java programs, by version of Redisson; each is built once.
var builds sync.Map

type build struct {
	once      sync.Once
	classPath string
	err       error
	output    []byte
}

// classPath builds the Java program with that version of Redisson, and returns where it is.
func classPath(t *testing.T, version string) string {
	t.Helper()
	stored, _ := builds.LoadOrStore(version, &build{})
	b := stored.(*build)
	b.once.Do(func() { b.run(version) })
	if b.err != nil {
		t.Fatalf("mvn: %v\n%s", b.err, b.output)
	}
	return b.classPath
}

// run tries first without a network, which is quicker.
func (b *build) run(version string) {
	for _, offline := range []string{"-o", "-B"} {
		cmd := exec.Command("mvn", "-q", "-B", offline, "-Dredisson.version="+version, "process-classes")
		cmd.Dir = "java"
		if b.output, b.err = cmd.CombinedOutput(); b.err == nil {
			break
		}
	}
	target := filepath.Join("java", "target", version)
	b.classPath = filepath.Join(target, "classes") + string(filepath.ListSeparator) + filepath.Join(target, "lib", "*")
}
