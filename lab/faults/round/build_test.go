package round_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

// clockSource is added to package time. It shifts the wall clock by what stands in the environment at each reading; the
// monotonic clock and timers stay true. Shims like libfaketime do not reach Go, which asks the kernel without libc.
const clockSource = `package time

import "syscall"

func shiftClock(sec int64, nsec int32) (int64, int32) {
	text, ok := syscall.Getenv("` + worker.ClockEnv + `")
	if !ok {
		return sec, nsec
	}
	shift, negative := int64(0), false
	for i := 0; i < len(text); i++ {
		if text[i] == '-' {
			negative = true
			continue
		}
		shift = shift*10 + int64(text[i]-'0')
	}
	if negative {
		shift = -shift
	}
	sec, total := sec+shift/1e9, int64(nsec)+shift%1e9
	switch {
	case total < 0:
		return sec - 1, int32(total + 1e9)
	case total >= 1e9:
		return sec + 1, int32(total - 1e9)
	}
	return sec, int32(total)
}
`

// nows are the beginnings of time.Now in the versions of Go, after which the clock is shifted.
var nows = []string{
	"func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n",
	"func Now() Time {\n\tsec, nsec, mono := now()\n",
}

// buildWorker builds a worker whose wall clock can be set, and with it the standard library.
func buildWorker(t *testing.T) string {
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
	text := ""
	for _, now := range nows {
		if strings.Count(string(original), now) == 1 {
			text = strings.Replace(string(original), now, now+"\tsec, nsec = shiftClock(sec, nsec)\n", 1)
			break
		}
	}
	if text == "" {
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
	program := filepath.Join(dir, "process")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "../worker/process")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build -overlay: %v\n%s", err, out)
	}
	return program
}
