package holdfast_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestHelpOfDefaults: the help of a command has the defaults of its flags.
func TestHelpOfDefaults(t *testing.T) {
	t.Parallel()
	got := finish(t, with(command(t, "", "once", "--help"), "COLUMNS=500"))
	for _, text := range []string{"every third of it. Defaults to 30s.", "after its end. Defaults to 24h.", "records. Defaults to 65536."} {
		got.want(t, 0, text, "")
	}
}

// TestHelpOfOwnFlags: the help of a command has its own flags first, and the flags of all commands last.
func TestHelpOfOwnFlags(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"exec", "--nonblock"}, {"records", "--state"}, {"unlock", "--owner"}} {
		help := run(t, "", command[0], "--help").stdout
		own, all := strings.Index(help, command[1]), strings.Index(help, "Flags of all commands:")
		if own < 0 || all < own || strings.Index(help, "--redis") < all {
			t.Errorf("%s --help:\n%s", command[0], help)
		}
	}
}

// TestHelp: the documentation of the program has what --help prints.
func TestHelp(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, usage, _ := strings.Cut(string(text), "// # Usage\n//\n")
	usage, _, _ = strings.Cut(usage, "package main")
	var documented strings.Builder
	for line := range strings.Lines(usage) {
		documented.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "//"), "\t"))
	}
	got := finish(t, with(command(t, "", "--help"), "COLUMNS=80"))
	got.want(t, 0, "", "")
	if got.stdout != documented.String() {
		t.Errorf("doc.go has\n%swant\n%s", &documented, got.stdout)
	}
}

// TestPages: the completions are scripts that their shells can read, and the manual page has all commands.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := run(t, "", "completion", shell)
		script.want(t, 0, "unlock", "")
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		check := exec.Command(shell, "-n")
		check.Stdin = strings.NewReader(script.stdout)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", shell, err, out)
		}
	}
	page := run(t, "", "man").stdout
	for _, word := range []string{".TH HOLDFAST", "cron pause", "EXIT STATUS"} {
		if !strings.Contains(page, word) {
			t.Errorf("the manual page lacks %q", word)
		}
	}
	run(t, "", "--version").want(t, 0, "", "")
	run(t, "", "--help").want(t, 0, "exec", "")
}

// TestCompletes: bash completes commands, flags, behind -- files, and the names of locks, records and jobs, with colons and
// without.
func TestCompletes(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	for _, name := range []string{"order:42", "order:43", "backup", "a b"} {
		if _, err := locks.Mutex(name).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := locks.Once("charge:7").Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	scheduler := cron.New()
	if _, err := cronlock.AddFunc(scheduler, locks, "0 3 * * *", "nightly", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	t.Cleanup(func() { <-scheduler.Stop().Done() })
	testkit.Eventually(t, within, "the job", func() bool {
		jobs, err := cronlock.Jobs(t.Context(), locks)
		return err == nil && len(jobs) == 1
	})
	script := run(t, "", "completion", "bash").stdout
	bin := t.TempDir()
	program := command(t, urlOf(srv))
	if err := os.WriteFile(filepath.Join(bin, "holdfast"), []byte("#!/bin/sh\nexec "+program.Path+` "$@"`+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"holdfast un":                  "unlock",
		"holdfast cron p":              "pause",
		"holdfast exec n --tt":         "--ttl",
		"holdfast exec n -- /etc/host": "/etc/hosts",
		"holdfast show ord":            "order:42 order:43",
		"holdfast unlock order:4":      "42 43", // bash replaces only what is behind the colon
		"holdfast  watch  char":        "charge:7",
		"holdfast unlock char":         "", // a record, and no lock
		"holdfast forget charge:":      "7",
		"holdfast exec ba":             "backup",
		"holdfast unlock a":            `a\ b`,
		"holdfast cron pause ni":       "nightly",
		"holdfast show order:42 ":      "--help", // not a second name
	} {
		ask := `COMP_LINE="` + line + `"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(` + line + `); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _holdfast; echo "${COMPREPLY[*]}"`
		bash := exec.Command("bash", "-c", script+ask)
		bash.Env = append(program.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := bash.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) || want == "" && strings.TrimSpace(string(out)) != "" {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
}

// TestNamesAreText: names that are no UTF-8 are refused: they would become one name.
func TestNamesAreText(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	for _, args := range [][]string{{"exec", "bad\xff", "--", "true"}, {"once", "bad\xfe", "--", "true"}, {"show", "bad\xff"}, {"exec", "n", "-c", "echo \xff"}} {
		run(t, url, args...).want(t, 64, "", "not in UTF-8")
	}
	run(t, url, "once", strings.Repeat("ä", 200), "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestEmptyTexts: a flag or a name whose text is empty, as of a variable that is not set, is refused, and not as if it was not
// given; TestEmptyFlags of package cli tries all flags. Variables of the environment may be empty.
func TestEmptyTexts(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	run(t, url, "exec", "-w=", "n", "--", "true").want(t, 64, "", "holdfast: --")
	run(t, url, "unlock", "--yes", "--owner", "", "n").want(t, 64, "", "--owner: a text is needed")
	run(t, url, "http-key", "--part", "host=a", "--part", "").want(t, 64, "", "--part: a text is needed")
	for _, args := range []string{"exec", "once", "elect", "show", "unlock", "resolve", "cron pause", "cron history", "digest"} {
		run(t, url, append(strings.Fields(args), "")...).want(t, 64, "", ">: a text is needed")
	}
	run(t, url, "forget", "", "--yes").want(t, 64, "", "forget needs a key")
	for _, args := range []string{"ls", "records"} {
		run(t, url, args, "").want(t, 0, "", "") // names that begin with nothing are all
	}
	empty := with(command(t, url, "exec", "n", "--", "echo", "ran"), "HOLDFAST_REDIS_USER=", "HOLDFAST_TLS_CA=", "HOLDFAST_REDIS_PASSWORD=")
	finish(t, empty).want(t, 0, "ran", "")
	run(t, url, "exec", "n", "--prefix", "", "--", "true").want(t, 64, "", "--prefix: a text is needed")
	finish(t, with(command(t, url, "ls"), "HOLDFAST_PREFIX=")).want(t, 0, "", `prefix "lock:"`)
	finish(t, with(command(t, url, "ls", "--no-prefix"), "HOLDFAST_PREFIX=shop:")).want(t, 0, "", `prefix ""`)
	finish(t, with(command(t, url, "ls"), "HOLDFAST_PREFIX=shop:")).want(t, 0, "", `prefix "shop:"`)
	run(t, url, "ls", "--no-prefix", "--prefix", "shop:").want(t, 64, "", "prefix")
}
