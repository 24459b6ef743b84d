package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/markdown"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestPageCommands runs each line of docs/command.md that calls the program, with programs in place of those that it names.
func TestPageCommands(t *testing.T) {
	t.Parallel()
	page, err := markdown.Read("../..", "docs/command.md")
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
	srv := redistest.Start(t)
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
			if result := finish(t, cmd); result.status != 0 || result.stderr != "" {
				t.Errorf("%s: %+v", line, result)
			}
		}
	}
	if ran < 8 {
		t.Errorf("ran only %d commands", ran)
	}
}
