package holdfast_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestExecStatus: each end of a command has its exit status.
func TestExecStatus(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("echo without an interpreter; exit 4\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"exec n -- true", 0, "", ""},
		{"exec n -- sh -c exit\x007", 7, "", ""},
		{"exec n -c exit\x009", 9, "", ""},
		{"exec n -- sh -c kill\x00-KILL\x00$$", 137, "", ""},
		{"exec n -- sh -c kill\x00-TERM\x00$$", 143, "", ""},
		{"exec n -- " + script, 4, "without an interpreter", ""},
		{"exec n -- no-such-command", 127, "", "no-such-command: command not found"},
		{"exec n -- /etc/passwd", 126, "", "cannot be executed: permission denied"},
		{"exec n", 64, "", "nothing to run"},
		{"exec n true", 64, "", "put -- before the command"},
		{"exec x echo hi", 64, "", "arguments are not taken for holdfast's own: -- echo hi\n"},
		{"exec n ls -l", 64, "", "put -- before it, as in: holdfast exec NAME -- ls -l"},
		{"once n ls --all", 64, "", "put -- before it, as in: holdfast once NAME -- ls -l"},
		{"exec n sh -c true", 64, "", "put -- before the command"},
		{"exec n --no-such-flag -- true", 64, "", "--no-such-flag\nTry: holdfast exec --help"},
		{"exec", 64, "", "<name>"},
		{"exec --", 64, "", "<name>"},
		{"exec -- true", 64, "", "the name is missing"},
		{"exec -n -- ls -l", 64, "", "put it in front of --, as in: NAME -- ls -l"},
		{"exec -c true -- true", 64, "", "the name is missing"},
		{"once -- true", 64, "", "the name is missing"},
		{"elect -- true", 64, "", "the name is missing"},
		{"exec a -- b -- true", 127, "", "b: command not found"},
		{"exec n -c true -- true", 64, "", "exclude each other"},
		{"exec n -n -w 1 -- true", 64, "", "-n and -w"},
		{"exec n -E 256 -- true", 64, "", "0 to 255"},
		{"exec n -j 0 -- true", 64, "", "at least 1"},
		{"exec n --ttl 1ms -- true", 64, "", "at least 10ms"},
		{"exec n --ttl -- true", 64, "", "--ttl: a duration is needed"},
		{"once n -E 256 -- true", 64, "", "0 to 255"},
		{"exec n --ttl soon -- true", 64, "", "no duration"},
		{"exec n --ttl 1s --kill-before 600ms -- true", 64, "", "half of the TTL"},
		{"exec n{ -- true", 64, "", "brace"},
		{"exec --redis redis://u:secret@localhost n -- true", 64, "", "other users"},
	} {
		args := strings.Fields(test.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "\x00", " ")
		}
		run(t, url, args...).want(t, test.status, test.stdout, test.stderr)
	}
}

// TestExecArguments: the command gets its arguments, its standard input and the variables of the lock.
func TestExecArguments(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	odd := []string{"", "--", "-n", "a  b", "*", "$HOME", "--ttl=1", "\n", "\xff"}
	result := run(t, urlOf(srv), append([]string{"exec", "n", "--", "printf", "[%s]"}, odd...)...)
	result.want(t, 0, fmt.Sprintf("[%s]", strings.Join(odd, "][")), "")

	cmd := command(t, urlOf(srv), "exec", "order:42", "-c", `cat; echo "$HOLDFAST_NAME $HOLDFAST_TOKEN $HOLDFAST_VALID_UNTIL $HOLDFAST_SUPERVISOR_FDS."`)
	cmd.Stdin = strings.NewReader("input;")
	got := finish(t, cmd)
	var name, until string
	var token int64
	if _, err := fmt.Sscanf(got.stdout, "input;%s %d %s .\n", &name, &token, &until); err != nil || name != "order:42" || token == 0 {
		t.Errorf("stdout %q, error %v", got.stdout, err)
	}
}

// TestSlot: only the command under a semaphore has a slot, and none that runs inside of it inherits it.
func TestSlot(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	run(t, url, "exec", "n", "-c", "echo slot ${HOLDFAST_SLOT-none}").want(t, 0, "slot none\n", "")
	cmd := command(t, url, "exec", "n", "-c", "echo slot ${HOLDFAST_SLOT-none}")
	finish(t, with(cmd, "HOLDFAST_SLOT=3")).want(t, 0, "slot none\n", "")
	cmd = command(t, url, "exec", "-j", "2", "n", "-c", "echo slot ${HOLDFAST_SLOT-none}")
	finish(t, with(cmd, "HOLDFAST_SLOT=3")).want(t, 0, "slot 0\n", "")
}

// TestWithoutPath: without PATH, programs are found where the system has them.
func TestWithoutPath(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	for args, status := range map[string]int{"exec n -- true": 0, "exec n -- no-such-command": 127} {
		cmd := command(t, url, strings.Fields(args)...)
		cmd.Env = slices.DeleteFunc(cmd.Env, func(variable string) bool { return strings.HasPrefix(variable, "PATH=") })
		finish(t, cmd).want(t, status, "", "")
	}
}

// TestExecConflict: a lock that another holder has is not taken, in each mode that excludes.
func TestExecConflict(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	lease, err := locks.Read("n").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range []string{"", "-x", "--fair", "-x --fair"} {
		args := append(append([]string{"exec", "-n"}, strings.Fields(flags)...), "n", "--", "echo", "ran")
		if result := run(t, urlOf(srv), args...); result.status != 75 || result.stdout != "" {
			t.Errorf("%q: %+v", flags, result)
		}
	}
	run(t, urlOf(srv), "exec", "-n", "-s", "n", "--", "echo", "ran").want(t, 0, "ran", "")
	run(t, urlOf(srv), "exec", "-n", "-E", "1", "n", "--", "echo", "ran").want(t, 1, "", "")
	run(t, urlOf(srv), "exec", "-n", "-E", "0", "n", "--", "false").want(t, 0, "", "")
	if got := run(t, urlOf(srv), "exec", "-w", "0", "-E", "0", "n", "--", "false"); got.status != 0 || got.stderr != "" {
		t.Errorf("a conflict that is expected: %+v", got)
	}
	run(t, urlOf(srv), "exec", "-v", "-w", "0", "-E", "0", "n", "--", "false").want(t, 0, "", "not acquired")
	// Within the time of -w the command also connects. On a busy machine that takes long, so the wait is long too.
	run(t, urlOf(srv), "exec", "-w", "3", "n", "--", "echo", "ran").want(t, 75, "", "not acquired")
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, urlOf(srv), "exec", "-n", "n", "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestExecLimit: of a semaphore, as many run as -j says.
func TestExecLimit(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	lease, err := newLocks(t, srv).Semaphore("n", 2).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, urlOf(srv), "exec", "-n", "-j", "2", "n", "-c", "echo slot $HOLDFAST_SLOT").want(t, 0, "slot 1", "")
	run(t, urlOf(srv), "exec", "-n", "-j", "1", "n", "--", "true").want(t, 75, "", "")
	_ = lease.Unlock(t.Context())
}

// TestExecReleases: the lock is free when the program ends, even if the command fails, except for its minimal time.
func TestExecReleases(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	for args, free := range map[string]bool{
		"exec n -- false":                       true,
		"exec n -- true":                        true,
		"exec n --min-hold 1h --ttl 2h -- true": false,
	} {
		run(t, urlOf(srv), strings.Fields(args)...)
		info, err := locks.Inspect(t.Context(), "n")
		if err != nil || (info.Mode == "") != free {
			t.Errorf("%s: %+v, %v", args, info, err)
		}
		_, _ = locks.ForceUnlock(t.Context(), "n")
	}
}
