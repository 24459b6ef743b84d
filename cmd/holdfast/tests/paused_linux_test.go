package holdfast_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestPausedHost: all processes are stopped for longer than the TTL, as on a laptop that is closed. When they continue, the
// command is ended at once. That is all that can be promised: another host may run its command meanwhile.
func TestPausedHost(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	cmd := start(t, command(t, urlOf(srv), "exec", "--ttl", "2s", "n", "--", "sleep", "60"))
	p := awaitCommand(t, cmd.Process.Pid)
	send(syscall.SIGSTOP, p.front, p.keeper, p.command)
	run(t, urlOf(srv), "exec", "n", "--", "echo", "ran").want(t, 0, "ran", "")
	continued := time.Now()
	send(syscall.SIGCONT, p.command, p.keeper, p.front)
	if status := awaitEnd(t, cmd); status != 79 || alive(p.command) {
		t.Errorf("status %d", status)
	}
	t.Logf("the command was ended within %v", time.Since(continued).Round(time.Millisecond))
}
