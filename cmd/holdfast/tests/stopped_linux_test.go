package holdfast_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// isStopped reports whether a process is stopped.
func isStopped(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(text), ") T ")
}

// startStopped starts a program without a terminal, and stops its command alone.
func startStopped(t *testing.T) processes {
	t.Helper()
	cmd := command(t, urlOf(testkit.Start(t)), "exec", "n", "--", "sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := awaitCommand(t, start(t, cmd).pid)
	send(syscall.SIGSTOP, p.command)
	testkit.Eventually(t, within, "the command to stop", func() bool { return isStopped(p.command) })
	return p
}

// TestStoppedWithoutTerminal: without a terminal, a signal for the program reaches a command that is stopped, and the end
// of that command is the end of the program: no process would continue a front that has stopped.
func TestStoppedWithoutTerminal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := startStopped(t)
			send(sig, p.front)
			testkit.Eventually(t, within, "the program to end", func() bool { return !alive(p.front) && !alive(p.command) })
		})
	}
	t.Run("CONT and KILL for the command alone", func(t *testing.T) {
		t.Parallel()
		p := startStopped(t)
		send(syscall.SIGCONT, p.command)
		testkit.Eventually(t, within, "the command to continue", func() bool { return !isStopped(p.command) })
		send(syscall.SIGSTOP, p.command)
		send(syscall.SIGKILL, p.command)
		testkit.Eventually(t, within, "the program to end", func() bool { return !alive(p.front) })
	})
}

// TestStoppedInTerminal: a command that stops alone stops its job, which continues when the command continues, or ends when
// it is killed, also if it is CONT for the command alone. The suspend of a shell that has a process group of its own stops
// the job too.
func TestStoppedInTerminal(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, testkit.Start(t))
	pid := filepath.Join(t.TempDir(), "pid")
	script := fmt.Sprintf("hf exec n -c 'echo $$ >%s; kill -STOP $$; echo b''ack $((6 * 7))'", pid)
	const await = "until [ $(jobs -s | wc -l) = 0 ]; do sleep 0.02; done; echo no''ne"
	for range 5 {
		term.run(script, "Stopped", "ready> ")
		term.run("kill -CONT $(cat "+pid+")", "back 42")
		term.run(await, "none")
	}
	term.run(script, "Stopped", "ready> ")
	term.run("kill -KILL $(cat "+pid+"); "+await, "none")
	term.run(script, "Stopped", "ready> ")
	term.run("fg", "back 42")
	term.run("hf exec n -- env PS1='inner> ' bash --norc --noprofile -i", "inner> ")
	term.run("suspend", "Stopped", "ready> ")
	term.run("fg", "inner> ")
	term.run("exit 4", "exit\r\n")
	term.run("echo sta''tus $?", "status 4")
}
