package holdfast_test

import (
	"os"
	"strings"
	"testing"
)

// TestHelpOfDefaults: the help of a command has the defaults of its flags.
func TestHelpOfDefaults(t *testing.T) {
	t.Parallel()
	got := finish(t, with(command(t, "", "once", "--help"), "COLUMNS=500"))
	for _, text := range []string{"every third of it. Defaults to 30s.", "after its end. Defaults to 24h.", "records. Defaults to 65536."} {
		got.want(t, 0, text, "")
	}
}

// TestHelpOfOwnFlags: the help of a command has its own flags first, and those of all commands last.
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
