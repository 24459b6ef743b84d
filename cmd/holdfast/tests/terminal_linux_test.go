package holdfast_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// terminal is a shell with job control on a pseudo terminal.
type terminal struct {
	t    *testing.T
	file *os.File

	mu     sync.Mutex
	output strings.Builder // guarded by mu
	seen   int             // how much of it was expected; guarded by mu
}

// openTerminal starts a shell in which "hf" is the program.
func openTerminal(t *testing.T, srv *testkit.Server) *terminal {
	t.Helper()
	program := command(t, urlOf(srv))
	sh := exec.Command("bash", "--norc", "--noprofile", "-i")
	sh.Env = append(program.Env, "PS1=ready> ", "TERM=xterm", "BASH_SILENCE_DEPRECATION_WARNING=1", "HISTFILE=")
	file, err := pty.StartWithSize(sh, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, file: file}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(term, file)
	}()
	t.Cleanup(func() {
		killAll(sh.Process.Pid)
		_ = sh.Wait()
		<-ended // no process has the terminal any more
		_ = file.Close()
	})
	term.run("bind 'set enable-bracketed-paste off'; hf() { "+program.Path+` "$@"; }`, "ready> ")
	term.expect("ready> ")
	return term
}

func (term *terminal) Write(text []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.output.Write(text)
}

// shown returns all that was ever on the terminal.
func (term *terminal) shown() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.output.String()
}

// run types a line, and waits for texts one after the other.
func (term *terminal) run(line string, texts ...string) {
	term.t.Helper()
	term.press(line + "\n")
	for _, text := range texts {
		term.expect(text)
	}
}

// press types keys.
func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := term.file.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// expect waits for a text that was not expected before.
func (term *terminal) expect(text string) {
	term.t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		term.mu.Lock()
		rest := term.output.String()[term.seen:]
		if at := strings.Index(rest, text); at >= 0 {
			term.seen += at + len(text)
			term.mu.Unlock()
			return
		}
		term.mu.Unlock()
		if time.Now().After(deadline) {
			term.t.Fatalf("%q is not on the terminal, but ...%q", text, rest[max(0, len(rest)-500):])
		}
	}
}

// continueJob types fg, and waits for a text and until the job has the terminal. Why: the shell prints the command of the job
// first, and a key such as Ctrl-C that comes right then is a signal for the shell.
func (term *terminal) continueJob(text string) {
	term.t.Helper()
	shell := term.foreground()
	term.run("fg", text)
	testkit.Eventually(term.t, within, "the job to have the terminal", func() bool { return term.foreground() != shell })
}

// foreground returns the process group that the terminal sends its signals to.
func (term *terminal) foreground() int {
	term.t.Helper()
	group, err := unix.IoctlGetInt(int(term.file.Fd()), unix.TIOCGPGRP)
	if err != nil {
		term.t.Fatal(err)
	}
	return group
}

// The keys.
const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
	enter = "\r"
)

// TestTerminalInterrupt: Ctrl-C ends the command, and a script that has called the program.
func TestTerminalInterrupt(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, testkit.Start(t))
	term.run("hf exec n -c 'echo beg''un; exec sleep 60'", "begun")
	term.press(ctrlC)
	term.run("echo status $?", "status 130")
	term.run("bash -c '"+command(t, "").Path+` exec n -c "echo beg""un; exec sleep 60"; echo contin""ued'`, "begun")
	term.press(ctrlC)
	term.run("echo status $?", "status 130")
	if strings.Contains(term.shown(), "continued") {
		t.Error("the script has continued")
	}
	term.run("hf exec n -c 'echo beg''un; cat'", "begun")
	term.run("typed", "typed\r\ntyped")
	term.press("\x04")
	term.run("echo status $?", "status 0")
}

// TestTerminalStop: Ctrl-Z stops the command and gives the terminal back, while the lock is kept; fg and bg continue.
func TestTerminalStop(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	term := openTerminal(t, srv)
	term.run("hf exec --ttl 3s n -c 'echo beg''un; exec sleep 61'", "begun")
	term.press(ctrlZ)
	term.expect("Stopped")
	locks := newLocks(t, srv)
	info, err := locks.Inspect(t.Context(), "n")
	if err != nil || len(info.Holders) != 1 {
		t.Fatal(info, err)
	}
	token := info.Holders[0].Token
	time.Sleep(5 * time.Second) // longer than the TTL: a lock that is not renewed expires
	if info, err = locks.Inspect(t.Context(), "n"); err != nil || len(info.Holders) != 1 || info.Holders[0].Token != token {
		t.Errorf("the lock was not kept: %+v, %v", info, err)
	}
	term.run("bg", "&\r\n")
	term.run("jobs", "Running")
	term.continueJob("\"$@\"\r\n")
	term.press(ctrlC)
	term.run("echo status $?", "status 130")
	// A command that stops only itself stops the program too.
	term.run("hf exec n -c 'kill -STOP $$; echo b''ack'", "Stopped")
	term.run("fg", "back")
	term.run("echo status $?", "status 0")
	// A program that is stopped while it waits does not start its command until it continues.
	lease, err := locks.Mutex("n").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	term.press("hf exec n -c 'echo at la''st'\n")
	testkit.Eventually(t, within, "a waiter", func() bool {
		info, err := locks.Inspect(t.Context(), "n")
		return err == nil && info.Waiters > 0
	})
	term.press(ctrlZ)
	term.expect("Stopped")
	_ = lease.Unlock(t.Context())
	testkit.Eventually(t, within, "the lock to be taken", func() bool {
		info, err := locks.Inspect(t.Context(), "n")
		return err == nil && len(info.Holders) == 1
	})
	if strings.Contains(term.shown(), "at last") {
		t.Error("the command has started although the job was stopped")
	}
	term.run("fg", "at last")
}

// TestTerminalPrograms: full-screen programs, pipelines, a change of the size and a shell with job control work.
func TestTerminalPrograms(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"vim", "less"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	term := openTerminal(t, testkit.Start(t))
	file := filepath.Join(t.TempDir(), "file")
	term.run("hf exec n -- vim -u NONE -N "+file, "[New")
	term.press("ihello\x1b")
	term.press(ctrlZ)
	term.expect("Stopped")
	term.run("fg", "hello")
	term.press(":wq" + enter)
	term.expect("written")
	term.expect("ready> ")
	term.run("cat "+file, "hello\r\n")
	term.run("hf exec n -- seq 1000 | less", "\x1b[K")
	term.press("q")
	term.expect("ready> ")
	term.run("seq 1000 | hf exec n -- less", "\x1b[K")
	term.press("q")
	term.expect("ready> ")
	term.run("echo status $?", "status 0")
	term.run(`hf exec n -- bash -c 'trap "stty size; exit 3" WINCH; echo beg""un; while :; do sleep 0.05; done'`, "begun")
	if err := pty.Setsize(term.file, &pty.Winsize{Rows: 33, Cols: 99}); err != nil {
		t.Fatal(err)
	}
	term.expect("33 99")
	term.run("echo status $?", "status 3")
	term.run("hf exec n -- bash --norc --noprofile -i", "ready> ")
	term.run("sh -c 'echo beg''un; exec sleep 62'", "begun")
	term.press(ctrlZ)
	term.expect("Stopped")
	term.expect("ready> ")
	term.continueJob("sleep 62'\r\n")
	term.press(ctrlC)
	term.run("echo in''ner $?", "inner 130")
	term.run("exit 4", "exit\r\n")
	term.run("echo status $?", "status 4")
}

// onTerminal executes a command whose output is a terminal of a width, and returns what it has printed.
func onTerminal(t *testing.T, columns uint16, cmd *exec.Cmd) string {
	t.Helper()
	master, tty, err := pty.Open()
	if err == nil {
		t.Cleanup(func() { _, _ = master.Close(), tty.Close() })
		err = pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = tty
	started := start(t, cmd)
	_ = tty.Close()
	printed := make(chan []byte, 1)
	go func() {
		text, _ := io.ReadAll(master) // until no process has the terminal
		printed <- text
	}()
	if status := awaitEnd(t, started); status != 0 {
		t.Errorf("status %d", status)
	}
	return strings.ReplaceAll(string(<-printed), "\r\n", "\n")
}

// TestTerminalHelp: the help is as wide as the terminal, or as COLUMNS.
func TestTerminalHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"once", "--help"}} {
		for columns, variable := range map[uint16]string{60: "", 160: "none", 90: "70"} {
			width := strconv.Itoa(int(columns))
			if variable == "70" {
				width = variable
			}
			want := finish(t, with(command(t, "", args...), "COLUMNS="+width)).stdout
			got := onTerminal(t, columns, with(command(t, "", args...), "COLUMNS="+variable))
			if got != want {
				t.Errorf("%v on %d columns, with COLUMNS=%s:\n%swant\n%s", args, columns, variable, got, want)
			}
		}
	}
}
