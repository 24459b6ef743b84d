package cli

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestPanic: a fault of the program ends it, and does not pass for a success.
func TestPanic(t *testing.T) {
	t.Parallel()
	env := &environment{flags: new(grammar), stdout: &stream{to: io.Discard}, copied: &stream{to: io.Discard}, stderr: io.Discard}
	defer func() {
		if recover() == nil {
			t.Error("no panic without a context")
		}
	}()
	t.Errorf("status %d", env.main([]string{"man"}))
}

// TestEmptyFlags: each flag of each command refuses an empty text, unless it takes none.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	parser := func() *kong.Kong {
		env := &environment{flags: new(grammar), stdout: &stream{to: io.Discard}, stderr: io.Discard}
		if err := env.newParser(); err != nil {
			t.Fatal(err)
		}
		return env.parser
	}
	tried := 0
	for _, command := range parser().Model.Leaves(false) {
		for _, flag := range slices.Concat(command.AllFlags(false)...) {
			if flag.IsBool() {
				continue
			}
			path, _, _ := strings.Cut(command.Path(), " <")
			args := append(strings.Fields(path), "--"+flag.Name+"=")
			for _, positional := range command.Positional {
				if positional.Required {
					args = append(args, cmp.Or(append(positional.EnumSlice(), "n")...))
				}
			}
			parsed, err := parser().Parse(args)
			if err == nil {
				err = checkGiven(parsed)
			}
			if tried++; err == nil || !strings.Contains(err.Error(), "--"+flag.Name) {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d flags", tried)
	}
}
