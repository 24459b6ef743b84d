//go:build unix

package cronworker_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
)

// clockSource is added to package time. It shifts the wall clock; the monotonic clock and timers stay true, as on a
// host whose clock is off. Shims like libfaketime do not reach Go, which asks the kernel without libc.
const clockSource = `package time

import "syscall"

var clockShift = func() Duration {
	text, _ := syscall.Getenv("` + cronworker.ClockEnv + `")
	shift, _ := ParseDuration(text)
	return shift
}()

func shiftClock(sec int64, nsec int32) (int64, int32) {
	total := int64(nsec) + int64(clockShift%Second)
	sec += int64(clockShift / Second)
	switch {
	case total < 0:
		return sec - 1, int32(total + int64(Second))
	case total >= int64(Second):
		return sec + 1, int32(total - int64(Second))
	}
	return sec, int32(total)
}
`

// nows are the beginnings of time.Now in the versions of Go, after which the clock is shifted.
var nows = []string{
	"func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n",
	"func Now() Time {\n\tsec, nsec, mono := now()\n",
}

// buildReplica builds a replica whose wall clock can be shifted, and with it the standard library.
func buildReplica(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, source := t.TempDir(), filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	patched, added := filepath.Join(dir, "time.go"), filepath.Join(dir, "clock.go")
	original, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, done := string(original), false
	for _, now := range nows {
		if strings.Count(text, now) == 1 {
			text, done = strings.Replace(text, now, now+"\tsec, nsec = shiftClock(sec, nsec)\n", 1), true
			break
		}
	}
	if !done {
		t.Fatalf("time.Now in %s is not written as expected: add its beginning to those that are known", source)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(source, "time.go"): patched, filepath.Join(source, "holdfast_clock.go"): added,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		patched: text, added: clockSource, filepath.Join(dir, "overlay.json"): string(overlay),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "replica")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./replica")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build -overlay: %v\n%s", err, out)
	}
	return program
}
