package holdfast_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestWarnedBeforeLoss: while Redis is away, the command gets TERM before the lock can expire, and time to clean up.
func TestWarnedBeforeLoss(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	cmd := command(t, urlOf(srv), "exec", "--ttl", "3s", "--kill-before", "1.5s", "n", "-c",
		`trap 'echo cleaned up; exit 0' TERM; sleep 60 & wait`)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	started := start(t, cmd)
	awaitCommand(t, started.pid)
	srv.Pause()
	if status := awaitEnd(t, started); status != 79 || out.String() != "cleaned up\n" || !strings.Contains(errs.String(), "could not be renewed") {
		t.Errorf("status %d, output %q, %q", status, out.String(), errs.String())
	}
}

// TestKilledBeforeLoss: a command that ignores TERM, and what it has started in another session, is dead before the lock
// can be had.
func TestKilledBeforeLoss(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	cmd := start(t, command(t, urlOf(srv), "exec", "--ttl", "2s", "n", "-c",
		fmt.Sprintf(`trap '' TERM; setsid sh -c 'trap "" TERM; echo $$ >>%[1]s; sleep 61 & wait; sleep 62' & echo $$ >>%[1]s; sleep 63; sleep 64`, pids)))
	var all []int
	testkit.Eventually(t, within, "two processes", func() bool { all = readPids(pids); return len(all) == 2 })
	srv.Pause()
	if status := awaitEnd(t, cmd); status != 79 {
		t.Errorf("status %d", status)
	}
	for _, pid := range all {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
	srv.Resume()
}

func readPids(path string) (pids []int) {
	text, _ := os.ReadFile(path)
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestForcedOut: the command is ended when the program notices that an operator has taken the lock away.
func TestForcedOut(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	cmd := start(t, command(t, urlOf(srv), "exec", "--ttl", "3s", "n", "--", "sleep", "60"))
	p := awaitCommand(t, cmd.Process.Pid)
	if forced, err := newLocks(t, srv).ForceUnlock(t.Context(), "n"); !forced || err != nil {
		t.Fatal(forced, err)
	}
	if status := awaitEnd(t, cmd); status != 79 || alive(p.command) {
		t.Errorf("status %d", status)
	}
}

// TestMaxHold: the command is ended after its time, and the lock is free at once.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	run(t, urlOf(srv), "exec", "--max-hold", "0.1", "n", "--", "sleep", "60").want(t, 79, "", "longer than it may")
	run(t, urlOf(srv), "exec", "-n", "n", "--", "true").want(t, 0, "", "")
}

// TestLeftBehind: processes that the command leaves behind are ended, or waited for.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	pids := filepath.Join(t.TempDir(), "pids")
	run(t, url, "exec", "n", "-c", fmt.Sprintf("setsid sleep 60 >/dev/null 2>&1 & echo $! >%s; exit 6", pids)).want(t, 6, "", "")
	if all := readPids(pids); len(all) != 1 || alive(all[0]) {
		t.Errorf("processes %v are alive", all)
	}
	result := run(t, url, "exec", "--await-all", "n", "-c", `(sleep 0.3; echo "$HOLDFAST_NAME late") & exit 6`)
	result.want(t, 6, "n late", "")
}

// TestKilled: whichever process is killed, nothing of the command is left, and the exit status says so.
func TestKilled(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	for name, pick := range map[string]func(p processes) int{
		"front":   func(p processes) int { return p.front },
		"keeper":  func(p processes) int { return p.keeper },
		"command": func(p processes) int { return p.command },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pids := filepath.Join(t.TempDir(), "pids")
			cmd := start(t, command(t, urlOf(srv), "exec", name, "-c",
				fmt.Sprintf(`setsid sleep 60 & echo $! >%[1]s; echo $$ >>%[1]s; sleep 60 & wait`, pids)))
			var all []int
			testkit.Eventually(t, within, "two processes", func() bool { all = readPids(pids); return len(all) == 2 })
			p := awaitCommand(t, cmd.Process.Pid)
			send(syscall.SIGKILL, pick(p))
			want := map[string]int{"front": 137, "keeper": 79, "command": 137}[name]
			if status := awaitEnd(t, cmd); status != want {
				t.Errorf("status %d, want %d", status, want)
			}
			testkit.Eventually(t, within, "all processes to end", func() bool {
				return !alive(all[0]) && !alive(all[1]) && !alive(p.keeper)
			})
		})
	}
}
