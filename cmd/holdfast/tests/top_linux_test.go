package holdfast_test

import (
	"bufio"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

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
	term.expect(`Take "order:2"`)
	term.press("no\r")
	term.expect("nothing was changed")
	term.press("u")
	term.expect(`Take "order:2"`)
	term.press("yes\r")
	term.expect("taken away: order:2")
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

// TestTopShowsAnOutage: the view says that Redis does not answer, and since when, on its second line, whatever key is pressed. It
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
