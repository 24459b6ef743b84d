package holdfast_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestWarnedBeforeLoss: while Redis is unreachable, the command gets TERM before the lock can expire, and time to clean up.
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
		"parent":     func(p processes) int { return p.parent },
		"supervisor": func(p processes) int { return p.supervisor },
		"command":    func(p processes) int { return p.command },
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
			want := map[string]int{"parent": 137, "supervisor": 79, "command": 137}[name]
			if status := awaitEnd(t, cmd); status != want {
				t.Errorf("status %d, want %d", status, want)
			}
			testkit.Eventually(t, within, "all processes to end", func() bool {
				return !alive(all[0]) && !alive(all[1]) && !alive(p.supervisor)
			})
		})
	}
}

// TestPausedHost: all processes are stopped for longer than the TTL, as on a laptop that is closed. When they continue, the
// command is ended at once. That is all that can be promised: another host may run its command meanwhile.
func TestPausedHost(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	cmd := start(t, command(t, urlOf(srv), "exec", "--ttl", "2s", "n", "--", "sleep", "60"))
	p := awaitCommand(t, cmd.Process.Pid)
	send(syscall.SIGSTOP, p.parent, p.supervisor, p.command)
	run(t, urlOf(srv), "exec", "n", "--", "echo", "ran").want(t, 0, "ran", "")
	continued := time.Now()
	send(syscall.SIGCONT, p.command, p.supervisor, p.parent)
	if status := awaitEnd(t, cmd); status != 79 || alive(p.command) {
		t.Errorf("status %d", status)
	}
	t.Logf("the command was ended within %v", time.Since(continued).Round(time.Millisecond))
}

// TestQueued: with the default TTL, a command that has waited in a queue starts once, under a lease that is renewed, and
// ends by itself. Redis grants such a lease for some seconds only.
func TestQueued(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ first, second string }{
		{"exec --fair", "exec --fair"},
		{"exec -s", "exec -x"},
		{"exec -j 1", "exec -j 1"},
		{"elect", "elect"},
	} {
		t.Run(test.first+", "+test.second, func(t *testing.T) {
			t.Parallel()
			srv := testkit.Start(t)
			begin := func(verb, script string) (*process, *bytes.Buffer) {
				cmd, out := command(t, urlOf(srv), append(strings.Fields(verb), "n", "-c", script)...), new(bytes.Buffer)
				cmd.Stdout = out
				return start(t, cmd), out
			}
			first, _ := begin(test.first, "exec sleep 60")
			p := awaitCommand(t, first.pid)
			second, out := begin(test.second, `echo "$HOLDFAST_VALID_UNTIL"; sleep 1; echo ended; exit 6`)
			awaitPlaces(t, srv, 1)
			released := time.Now()
			send(syscall.SIGKILL, p.command)
			awaitEnd(t, first)
			status := awaitEnd(t, second)
			until, ended, _ := strings.Cut(out.String(), "\n")
			if status != 6 || ended != "ended\n" {
				t.Fatalf("status %d, output %q", status, out)
			}
			if valid, err := time.Parse(time.RFC3339, until); err != nil || valid.Before(released.Add(15*time.Second)) {
				t.Errorf("released at %v, the next lease is valid until %v, %v", released, valid, err)
			}
		})
	}
}

// TestElect: one host leads and can be found. When it loses leadership, its command is ended before another host's begins,
// and it campaigns again.
func TestElect(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	first := start(t, command(t, urlOf(srv), "elect", "--ttl", "3s", "--value", "host-1", "e", "--", "sleep", "60"))
	p := awaitCommand(t, first.Process.Pid)
	awaitLeader(t, locks, "host-1")
	second := start(t, command(t, urlOf(srv), "elect", "--ttl", "3s", "--value", "host-2", "e", "-c", "sleep 0.2; exit 7"))
	testkit.Eventually(t, within, "a candidate", func() bool {
		info, err := locks.Inspect(t.Context(), "e")
		return err == nil && info.Places == 1
	})
	if _, err := locks.ForceUnlock(t.Context(), "e"); err != nil {
		t.Fatal(err)
	}
	if status := awaitEnd(t, second); status != 7 {
		t.Errorf("the command of the second leader ended with %d", status)
	}
	testkit.Eventually(t, within, "the first command to end", func() bool { return !alive(p.command) })
	awaitLeader(t, locks, "host-1")
	again := awaitCommand(t, first.Process.Pid)
	send(syscall.SIGTERM, first.Process.Pid)
	if status := awaitEnd(t, first); status != 143 || alive(again.command) {
		t.Errorf("status %d", status)
	}
	if _, err := locks.Election("e").Leader(t.Context()); err == nil {
		t.Error("there is a leader after the end of all")
	}
}

// TestElectStopped: a host that was asked to end, and whose leadership is lost before the command has ended, campaigns no more.
func TestElectStopped(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	asked := filepath.Join(t.TempDir(), "asked")
	host := start(t, command(t, urlOf(srv), "elect", "--ttl", "3s", "--value", "host", "e", "-c",
		fmt.Sprintf("trap 'echo $$ >>%s' TERM; echo $$ >>%[1]s; while :; do sleep 0.1; done", asked)))
	entries := func(n int) func() bool { return func() bool { return len(readPids(asked)) == n } }
	testkit.Eventually(t, within, "the command to run", entries(1))
	awaitLeader(t, locks, "host")
	send(syscall.SIGTERM, host.pid)
	testkit.Eventually(t, within, "TERM for the command", entries(2))
	if _, err := locks.ForceUnlock(t.Context(), "e"); err != nil {
		t.Fatal(err)
	}
	if status := awaitEnd(t, host); status != 143 {
		t.Errorf("status %d", status)
	}
}

// awaitLeader waits until a leader with that value is known.
func awaitLeader(t *testing.T, locks *core.Client, value string) {
	t.Helper()
	testkit.Eventually(t, within, "the leader "+value, func() bool {
		leader, err := locks.Election("e").Leader(t.Context())
		return err == nil && leader.Value == value
	})
}
