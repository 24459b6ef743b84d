package holdfast_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestElect: one host leads and can be found. When it loses the lead, its command is ended before another host's begins,
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

// TestElectStopped: a host that was asked to end, and whose lead is lost before the command has ended, campaigns no more.
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
