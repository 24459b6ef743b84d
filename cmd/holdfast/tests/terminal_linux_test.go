package holdfast_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/core"
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

// continueJob types fg, and waits for a text and until the job has the terminal: the shell prints the command of the job
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

// TestTerminalQuestion: Ctrl-C and TERM end the program at its question, and nothing is changed.
func TestTerminalQuestion(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	if _, err := locks.Mutex("n").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	attempt, err := locks.Once("k").Begin(t.Context())
	if err == nil {
		err = attempt.Hold(t.Context(), "lost")
	}
	if err != nil {
		t.Fatal(err)
	}
	term := openTerminal(t, srv)
	for _, line := range []string{"forget k", "resolve k", "unlock n"} {
		term.run("hf "+line, "[y/N] ")
		term.press(ctrlC)
		term.expect("ready> ")
		term.run("echo status $?", "status 130", "ready> ")
		file := filepath.Join(t.TempDir(), "pid")
		term.run("sh -c 'echo $$ >"+file+"; exec "+command(t, "").Path+" "+line+"'", "[y/N] ")
		text, _ := os.ReadFile(file)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		send(syscall.SIGTERM, pid)
		term.expect("ready> ")
		term.run("echo status $?", "status 143", "ready> ")
	}
	if record, err := locks.Once("k").Peek(t.Context()); err != nil || record.State != core.StateUnknown {
		t.Errorf("%+v, %v", record, err)
	}
	if info, err := locks.Inspect(t.Context(), "n"); err != nil || info.Mode == "" {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestChangeBehindTheQuestion: between question and answer the record becomes another one, or the lock gets another holder. The
// program changes nothing, and exits with 75.
func TestChangeBehindTheQuestion(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	term := openTerminal(t, srv)
	begin := func() *core.Attempt {
		t.Helper()
		attempt, err := locks.Once("k").Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return attempt
	}
	peek := func() core.Record {
		t.Helper()
		record, err := locks.Once("k").Peek(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	clear := func() { must(locks.Once("k").ForgetRunning(t.Context(), peek())) }
	for _, line := range []string{"forget k", "forget --force k", "resolve k"} {
		for then, change := range map[string]func(*core.Attempt){
			"completes":  func(*core.Attempt) { must(locks.Once("k").Resolve(t.Context(), peek(), []byte("done"))) },
			"runs again": func(*core.Attempt) { clear(); begin() },
		} {
			attempt := begin()
			must(attempt.Hold(t.Context(), "lost"))
			term.run("hf "+line, "[y/N] ")
			change(attempt)
			now := peek()
			term.run("y", "has changed since it was seen", "ready> ")
			term.run("echo status $?", "status 75", "ready> ")
			if after := peek(); after.State != now.State || after.Token != now.Token || string(after.Value) != string(now.Value) {
				t.Errorf("%s of a record that %s: %+v has become %+v", line, then, now, after)
			}
			clear()
		}
	}
	running := begin()
	term.run("hf forget --force k", "[y/N] ")
	must(running.Complete(t.Context(), []byte("charged")))
	term.run("y", "has changed since it was seen", "ready> ")
	if r := peek(); r.State != core.StateCompleted {
		t.Errorf("the record of a charge is %+v", r)
	}
	for line, opts := range map[string][]core.LockOption{"unlock n": nil, "unlock n --owner o": {core.WithOwner("o")}} {
		first, err := locks.Fair("n").Lock(t.Context(), opts...)
		must(err)
		term.run("hf "+line, "[y/N] ")
		must(first.Unlock(t.Context()))
		second, err := locks.Fair("n").Lock(t.Context(), opts...)
		must(err)
		term.run("y", "ready> ")
		must(second.Extend(t.Context(), time.Minute))
		must(second.Unlock(t.Context()))
		if opts == nil {
			term.run("echo status $?", "status 75", "ready> ")
		}
	}
}

// TestResolveValueInterrupted: TERM ends the program while it reads the value to record.
func TestResolveValueInterrupted(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	cmd := command(t, urlOf(testkit.Start(t)), "resolve", "k", "--yes", "--value", "-")
	cmd.Stdin = read
	resolve := start(t, cmd)
	if _, err := write.WriteString("a part"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, within, "the value to be read", func() bool {
		unread, err := unix.IoctlGetInt(int(write.Fd()), unix.TIOCINQ)
		return err == nil && unread == 0
	})
	send(syscall.SIGTERM, resolve.pid)
	if status := awaitEnd(t, resolve); status != 143 {
		t.Errorf("status %d", status)
	}
}

// TestResolvedAnewBehindTheQuestion: between question and answer, a record that was resolved by hand is forgotten and
// resolved by hand again. The program keeps the second record, and exits with 75.
func TestResolvedAnewBehindTheQuestion(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	once := newLocks(t, srv).Once("k")
	term := openTerminal(t, srv)
	resolve := func(value string) core.Record {
		t.Helper()
		if err := once.Resolve(t.Context(), core.Record{}, []byte(value)); err != nil {
			t.Fatal(err)
		}
		record, err := once.Peek(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	first := resolve("receipt 1")
	term.run("hf forget --force k", "has completed: a retry would run again", "proof in a database", "Its key is \""+first.ProofKey+"\"", "[y/N] ")
	if err := once.Forget(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := resolve("receipt 2")
	term.run("y", "has changed since it was seen", "ready> ")
	term.run("echo status $?", "status 75", "ready> ")
	if r, err := once.Peek(t.Context()); err != nil || !r.Ended.Equal(second.Ended) || string(r.Value) != "receipt 2" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTop: the view shows the locks, filters them, and takes one away after a confirmation.
func TestTop(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	var leases []*core.Lease
	for _, name := range []string{"order:1", "order:2", "other"} {
		lease, err := locks.Mutex(name).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	term := openTerminal(t, srv)
	term.run("hf top --sort name -i 0.2", "3 locks", "order:1", "order:2", "other")
	term.press("/")
	term.expect("Only names that contain: ")
	term.press("order:2\r")
	term.expect("1 locks")
	term.press("u")
	term.expect(`Force-release "order:2"`)
	term.press("no\r")
	term.expect("nothing was changed")
	term.press("u")
	term.expect(`Force-release "order:2"`)
	term.press("yes\r")
	term.expect("force-released: order:2")
	if info, err := locks.Inspect(t.Context(), "order:2"); err != nil || info.Mode != "" {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := locks.Inspect(t.Context(), "order:1"); err != nil || info.Holders[0].Token != leases[0].Token() {
		t.Errorf("%+v, %v", info, err)
	}
	term.press("q")
	term.expect("ready> ")
	term.run("hf unlock order:1", "[y/N]")
	term.run("y", "ready> ")
	if info, err := locks.Inspect(t.Context(), "order:1"); err != nil || info.Mode != "" {
		t.Errorf("%+v, %v", info, err)
	}
	run(t, urlOf(srv), "top").want(t, 64, "", "needs a terminal")
}

// TestTopShowsAnOutage: the view says that Redis does not reply, and since when, on its second line, whatever key is pressed. It
// still ends at once.
func TestTopShowsAnOutage(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	if _, err := newLocks(t, srv).Mutex("order:1").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	term := openTerminal(t, srv)
	term.run("hf top -i 0.2", "order:1", `prefix "lock:" on unix://`)
	srv.Pause()
	term.expect("OUTAGE, nothing new since")
	term.press("n")
	term.expect("by name")
	term.expect("OUTAGE, nothing new since")
	srv.Resume()
	term.expect(`prefix "lock:" on unix://`)
	srv.Pause()
	term.expect("OUTAGE, nothing new since")
	term.press("q")
	term.expect("ready> ")
	srv.Resume()
}

// TestWatch prints a state when it changes.
func TestWatch(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	cmd := command(t, urlOf(srv), "watch", "-i", "0.02", "--json", "n")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	lines := bufio.NewScanner(out)
	for _, want := range []string{`"mode":""`, `"mode":"mutex"`} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("printed %s, want %s", lines.Text(), want)
		}
		if want == `"mode":""` {
			if _, err := locks.Mutex("n").Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Process.Kill()
}
