package holdfast_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

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
