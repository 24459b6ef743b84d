package holdfast_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// listenerVariable makes the test binary, with the argument "listen", a command that prints the signals that it receives.
const listenerVariable = "HOLDFAST_TEST_LISTENER"

// init makes it that command, before TestMain makes it the program. It is not in TestMain because other systems have other signals.
func init() {
	if os.Getenv(listenerVariable) != "" && os.Args[1] == "listen" {
		listen()
		os.Exit(0)
	}
}

// listen prints the signals that it receives, until one of them is USR2.
func listen() {
	incoming := make(chan os.Signal, 64)
	signal.Notify(incoming, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	fmt.Println("ready")
	for sig := range incoming {
		fmt.Println(sig)
		if sig == syscall.SIGUSR2 {
			return
		}
	}
}

// listener is a program that runs a command that prints its signals.
type listener struct {
	*process
	lines *bufio.Scanner
}

// startListener starts one in a process group of its own.
func startListener(t *testing.T, url string) *listener {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, url, "exec", "n", "--", path, "listen")
	cmd.Env = append(cmd.Env, listenerVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{start(t, cmd), bufio.NewScanner(out)}
	if line := l.next(t); line != "ready" {
		t.Fatalf("the command says %q", line)
	}
	return l
}

func (l *listener) next(t *testing.T) string {
	t.Helper()
	timer := time.AfterFunc(within, func() { _ = l.Process.Kill() })
	defer timer.Stop()
	if !l.lines.Scan() {
		t.Fatal("the command says nothing more")
	}
	return l.lines.Text()
}

// TestSignals: the command receives a signal once, whether it was sent to the program, to its supervisor or to the whole group.
func TestSignals(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	for _, sig := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGWINCH,
	} {
		for _, to := range []string{"parent", "supervisor", "group"} {
			t.Run(fmt.Sprint(sig, " to the ", to), func(t *testing.T) {
				t.Parallel()
				l := startListener(t, url+"?db="+fmt.Sprint(int(sig)%16))
				p := awaitCommand(t, l.Process.Pid)
				if to == "group" {
					time.Sleep(200 * time.Millisecond) // a command that has just started may receive the signal twice
				}
				send(sig, map[string]int{"parent": p.parent, "supervisor": p.supervisor, "group": 0}[to])
				if to == "group" {
					_ = syscall.Kill(-p.parent, sig)
				}
				if got := l.next(t); got != sig.String() {
					t.Errorf("received %q", got)
				}
				send(syscall.SIGUSR2, p.parent) // forwarded after all that came before
				if got := l.next(t); got != syscall.SIGUSR2.String() {
					t.Errorf("received %q as well", got)
				}
				if status := awaitEnd(t, l.process); status != 0 {
					t.Errorf("status %d", status)
				}
			})
		}
	}
}

// TestSignalsInherited: the command has the signal mask that the program was started with, and ignores HUP and INT if the
// program was started so. The runtime of Go resets all other ignored signals.
func TestSignalsInherited(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	for _, ignored := range []string{"", "trap '' HUP; ", "trap '' HUP INT; "} {
		const show = `grep -E "^Sig(Blk|Ign)" /proc/self/status`
		plain, err := exec.Command("sh", "-c", ignored+show).Output()
		if err != nil {
			t.Fatal(err)
		}
		program := command(t, url, "exec", "n", "-c", show)
		under := exec.Command("sh", append([]string{"-c", ignored + `exec "$0" "$@"`, program.Path}, program.Args[1:]...)...)
		under.Env = program.Env
		if got := finish(t, under); got.stdout != string(plain) {
			t.Errorf("%q: the command has\n%swant\n%s%s", ignored, got.stdout, plain, got.stderr)
		}
	}
}

// TestSignalWhileWaiting: a signal ends the wait for the lock, and leaves no waiter.
func TestSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	lease, err := locks.Mutex("n").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		cmd := command(t, urlOf(srv), "exec", "--fair", "n", "--", "echo", "ran")
		var out bytes.Buffer
		cmd.Stdout = &out
		started := start(t, cmd)
		awaitPlaces(t, srv, 1)
		send(sig, started.pid)
		if status := awaitEnd(t, started); status != 128+int(sig) || out.Len() > 0 {
			t.Errorf("%v: status %d, output %q", sig, status, out.String())
		}
		awaitPlaces(t, srv, 0)
	}
	_ = lease.Unlock(t.Context())
}

// shots is how many signals TestSignalAtAnyTime sends.
var shots = flag.Int("shots", 24, "how many signals TestSignalAtAnyTime sends, spread over the start of the program")

// TestSignalAtAnyTime: TERM for the parent or for the whole group ends the program, at whatever moment of its start, while it
// waits, or while its command runs.
func TestSignalAtAnyTime(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	if _, err := newLocks(t, srv).Mutex("held").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range *shots {
		name, group := []string{"held", fmt.Sprint("free-", i)}[i%2], i/2%2 == 1
		cmd := command(t, urlOf(srv), "exec", "--fair", name, "--", "sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		started := start(t, cmd)
		time.Sleep(rand.N(200 * time.Millisecond)) // any moment is right
		target := started.pid
		if group {
			target = -target
		}
		_ = syscall.Kill(target, syscall.SIGTERM)
		if status := awaitEnd(t, started); status != 143 {
			t.Errorf("%s, group %v: status %d", name, group, status)
		}
	}
	awaitPlacesOf(t, srv, "held", 0)
}

// TestSignalToRest: when only processes are left that the command has left behind, a signal for the parent ends them.
func TestSignalToRest(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	started := start(t, command(t, urlOf(testkit.Start(t)), "exec", "--await-all", "n", "-c",
		fmt.Sprintf("setsid sleep 60 & echo $$ $! >%s; exit 3", pids)))
	var all []int
	testkit.Eventually(t, within, "the command to end", func() bool {
		all = readPids(pids)
		return len(all) == 2 && !alive(all[0])
	})
	send(syscall.SIGTERM, started.pid)
	if status := awaitEnd(t, started); status != 3 || alive(all[1]) {
		t.Errorf("status %d, the rest is alive: %v", status, alive(all[1]))
	}
}

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
// of that command is the end of the program: no process would continue a parent that has stopped.
func TestStoppedWithoutTerminal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := startStopped(t)
			send(sig, p.parent)
			testkit.Eventually(t, within, "the program to end", func() bool { return !alive(p.parent) && !alive(p.command) })
		})
	}
	t.Run("CONT and KILL for the command alone", func(t *testing.T) {
		t.Parallel()
		p := startStopped(t)
		send(syscall.SIGCONT, p.command)
		testkit.Eventually(t, within, "the command to continue", func() bool { return !isStopped(p.command) })
		send(syscall.SIGSTOP, p.command)
		send(syscall.SIGKILL, p.command)
		testkit.Eventually(t, within, "the program to end", func() bool { return !alive(p.parent) })
	})
}
