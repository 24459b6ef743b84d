// Package holdfast_test runs the command as users do: as a process, with terminals, signals and real servers.
package holdfast_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// programVariable makes the test binary the program itself.
const programVariable = "HOLDFAST_TEST_PROGRAM"

// within bounds all waiting of tests. It is long, because the machine may be busy.
const within = 30 * time.Second

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(serviceVariable) != "":
		if err := serve(os.Getenv(serviceVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case os.Getenv(programVariable) != "":
		cli.Run()
	}
	catchIgnored(syscall.SIGHUP, syscall.SIGINT)
	testkit.VerifyTestMain(m)
}

// catchIgnored catches signals that this process was started to ignore, as by nohup or as a background job of a script.
// Otherwise the program would inherit that, and rightly not end when a test sends it such a signal.
func catchIgnored(signals ...os.Signal) {
	for _, sig := range signals {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// urlOf returns the URL of a server of a test.
func urlOf(s *testkit.Server) string { return "unix://" + s.Addr() }

// command returns the program with arguments, on a Redis.
func command(t testing.TB, url string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Args[0] = "holdfast"
	cmd.Env = append(os.Environ(), programVariable+"=1", "HOLDFAST_REDIS="+url)
	return cmd
}

// with adds variables to the environment of a command.
func with(cmd *exec.Cmd, variables ...string) *exec.Cmd {
	cmd.Env = append(cmd.Env, variables...)
	return cmd
}

// result is how a command ended.
type result struct {
	status         int
	stdout, stderr string
}

// run executes the program to its end.
func run(t testing.TB, url string, args ...string) result {
	t.Helper()
	return finish(t, command(t, url, args...))
}

// finish executes a command to its end. It has no input.
func finish(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// want fails the test if the result has another status, or lacks texts.
func (r result) want(t testing.TB, status int, stdout, stderr string) {
	t.Helper()
	if r.status != status || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		t.Errorf("status %d, stdout %q, stderr %q; want %d, %q, %q", r.status, r.stdout, r.stderr, status, stdout, stderr)
	}
}

// newLocks returns a client of the library, on the server of the commands.
func newLocks(t testing.TB, s *testkit.Server) *core.Client {
	t.Helper()
	locks, err := core.New(s.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// wantMatch fails the test unless text matches the pattern, and returns the groups.
func wantMatch(t *testing.T, text, pattern string) []string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%s\nhas no %s", text, pattern)
	}
	return found
}
