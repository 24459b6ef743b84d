package holdfast_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// overhead is how often TestOverhead runs each command; 0 skips it.
var overhead = flag.Int("overhead", 0, "how often TestOverhead runs each command")

// TestOverhead measures what the program adds to a command, beside flock(1) and the least that a shell can do with Redis.
func TestOverhead(t *testing.T) {
	if *overhead == 0 {
		t.Skip("measures only with -overhead")
	}
	srv := testkit.Start(t)
	program := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	shell := fmt.Sprintf(`[ "$(redis-cli -s %[1]s SET n $$ NX PX 30000)" = OK ] && { true; redis-cli -s %[1]s DEL n >/dev/null; }`, srv.Addr())
	for _, c := range []struct {
		name string
		args []string
	}{
		{"`true` alone", []string{"true"}},
		{"`flock FILE true`, one host", []string{"flock", filepath.Join(t.TempDir(), "file"), "true"}},
		{"`SET NX`, `true`, `DEL` with redis-cli in sh, without renewal", []string{"sh", "-c", shell}},
		{"`holdfast exec n -- true`", []string{program, "exec", "n", "--", "true"}},
	} {
		t.Logf("| %s | %.1f |", c.name, float64(median(t, urlOf(srv), c.args))/float64(time.Millisecond))
	}
	cmd := exec.Command(program, "exec", "n", "--", "sleep", "60")
	cmd.Env = append(os.Environ(), "HOLDFAST_REDIS="+urlOf(srv))
	start(t, cmd)
	p := awaitCommand(t, cmd.Process.Pid)
	t.Logf("memory while the command runs: front %s, keeper %s; binary %.1f MB", resident(p.front), resident(p.keeper), float64(info.Size())/1e6)
}

// median returns the median time of a command.
func median(t *testing.T, url string, args []string) time.Duration {
	t.Helper()
	var times []time.Duration
	for range *overhead {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "HOLDFAST_REDIS="+url)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v, %s", args, err, out)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// resident returns the memory of a process that is its own, and all that is mapped.
func resident(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	fields := make(map[string]string)
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields["RssAnon"] + " (" + fields["VmRSS"] + " with files)"
}
