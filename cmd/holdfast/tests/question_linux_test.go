package holdfast_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

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
