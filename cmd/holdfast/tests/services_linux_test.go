package holdfast_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// TestUnit has systemd verify the unit of docs/command.md, with programs that exist in place of those that it names.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	page, err := markdown.Read("../../..", "docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	unit := ""
	blocks, _ := page.Split()
	for _, b := range blocks {
		if b.Language == "ini" {
			unit += strings.NewReplacer("/usr/bin/holdfast", "/bin/true", "/usr/bin/scheduler", "/bin/true").Replace(b.Code)
		}
	}
	path := filepath.Join(t.TempDir(), "scheduler.service")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	got := finish(t, exec.Command(analyze, "verify", "--man=no", path))
	if got.status != 0 || strings.Contains(got.stderr, "scheduler.service") || !strings.Contains(unit, "elect scheduler --") {
		t.Errorf("%s%+v", unit, got)
	}
}

// startService starts the program as systemd does: no terminal, no input, and a session of its own.
func startService(t *testing.T, cmd *exec.Cmd) (*process, processes) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	started := start(t, cmd)
	return started, awaitCommand(t, started.pid)
}

// TestServiceStop: TERM for the main process reaches the command, and leadership is free at once, whether the command has an
// end of its own or dies.
func TestServiceStop(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	for script, want := range map[string]int{
		"trap 'exit 0' TERM; echo ready; sleep 60 & wait": 0,
		"echo ready; exec sleep 61":                       143,
	} {
		out := filepath.Join(t.TempDir(), "journal")
		file, err := os.Create(out)
		if err != nil {
			t.Fatal(err)
		}
		cmd := command(t, urlOf(srv), "elect", "--ttl", "5m", "--kill-before", "1m", "e", "-c", script)
		cmd.Stdout = file
		started, p := startService(t, cmd)
		testkit.Eventually(t, within, "the command to be ready", func() bool {
			text, _ := os.ReadFile(out)
			return string(text) == "ready\n"
		})
		send(syscall.SIGTERM, started.pid)
		if status := awaitEnd(t, started); status != want || alive(p.command) {
			t.Errorf("%s: status %d", script, status)
		}
		if leader, err := locks.Election("e").Leader(t.Context()); err == nil {
			t.Errorf("%s: %+v leads", script, leader)
		}
		_ = file.Close()
	}
}

// TestServiceKilled: a command that ignores TERM gets KILL at the same time as all other processes of the unit. Nothing
// is left, and the lock is free after its TTL.
func TestServiceKilled(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	pids := filepath.Join(t.TempDir(), "pids")
	started, p := startService(t, command(t, urlOf(srv), "exec", "--ttl", "3s", "n", "-c",
		"trap '' TERM; setsid sleep 60 & echo $$ $! >"+pids+"; while :; do sleep 62; done"))
	var all []int
	testkit.Eventually(t, within, "two processes", func() bool { all = readPids(pids); return len(all) == 2 })
	send(syscall.SIGTERM, started.pid)
	send(syscall.SIGKILL, append([]int{p.parent, p.supervisor}, all...)...)
	if status := awaitEnd(t, started); status != 137 {
		t.Errorf("status %d", status)
	}
	testkit.Eventually(t, within, "all processes to end", func() bool {
		return !alive(all[0]) && !alive(all[1]) && !alive(p.supervisor)
	})
	if _, err := newLocks(t, srv).Mutex("n").Lock(t.Context(), core.WithWait(within)); err != nil {
		t.Error(err)
	}
}

// TestCrontab: as a line of a crontab it prints what the command prints, and nothing if another host has the lock.
func TestCrontab(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	program := command(t, "")
	cron := func(line string) result {
		cmd := exec.Command("sh", "-c", program.Path+" "+line+" <&-")
		cmd.Env = []string{"SHELL=/bin/sh", "HOME=/", "LOGNAME=nobody", "PATH=/usr/bin:/bin", "HOLDFAST_REDIS=" + urlOf(srv), programVariable + "=1"}
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
		return finish(t, cmd) // which waits until no process has its output any more, as cron does
	}
	const line = "exec -n -E 0 backup:db -c 'echo done; sleep 60 & echo warned >&2'"
	if got := cron(line); got != (result{0, "done\n", "warned\n"}) {
		t.Errorf("%+v", got)
	}
	lease, err := newLocks(t, srv).Mutex("backup:db").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := cron(line); got != (result{}) {
		t.Errorf("beside another host: %+v", got)
	}
	_ = lease.Unlock(t.Context())
}

// TestPageCommands runs each line of docs/command.md that calls the program, with programs in place of those that it names.
func TestPageCommands(t *testing.T) {
	t.Parallel()
	page, err := markdown.Read("../../..", "docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	program := command(t, "")
	stubs := map[string]string{"holdfast": `exec ` + program.Path + ` "$@"`}
	for _, name := range []string{"backup.sh", "deploy.sh", "sync.sh", "scheduler"} {
		stubs[name] = "echo " + name
	}
	for name, script := range stubs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	srv := testkit.Start(t)
	ran := 0
	blocks, _ := page.Split()
	for _, b := range blocks {
		for line := range strings.SplitSeq(b.Code, "\n") {
			at := strings.Index(line, "holdfast ")
			if b.Language != "sh" && b.Language != "crontab" || at < 0 {
				continue
			}
			ran++
			cmd := exec.Command("sh", "-ec", line[at:])
			cmd.Env = append(command(t, urlOf(srv)).Env, "PATH="+bin+":"+os.Getenv("PATH"))
			// Operators' commands say on standard error what they have found, and where. The others are silent, for cron.
			silent := !strings.HasPrefix(line[at:], "holdfast ls") && !strings.HasPrefix(line[at:], "holdfast http-key")
			if result := finish(t, cmd); result.status != 0 || silent && result.stderr != "" {
				t.Errorf("%s: %+v", line, result)
			}
		}
	}
	if ran < 8 {
		t.Errorf("ran only %d commands", ran)
	}
}

// TestPageStatuses: the manual page has the exit statuses of docs/command.md, and no others.
func TestPageStatuses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| exit status | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	_, manual, _ := strings.Cut(run(t, "", "man").stdout, ".SH EXIT STATUS\n")
	listed := func(text, pattern string) (all []string) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
		return all
	}
	documented, printed := listed(table, `(?m)^\| (\d[\d, ]*\d) \|`), listed(manual, `(?m)^\.B (\d[\d, ]*\d)$`)
	if len(documented) < 6 || !slices.Equal(documented, printed) {
		t.Errorf("docs/command.md has %q, the manual page %q", documented, printed)
	}
}
