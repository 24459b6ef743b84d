package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// nastyTexts are what another program may have written to Redis.
var nastyTexts = []string{
	strings.Repeat("\x1b[2J\u202e", 100_000), "\x1b]0;title\x07", "\u009b31m", "\u202ereversed", "a\nholdfast: forged", "a\r\u2028b", "\x00\x7f\xff", "\U000e0041",
}

// TestForeignText: no text of another program sends commands to a terminal, adds a line, or reverses what is read, in any output.
func TestForeignText(t *testing.T) {
	t.Parallel()
	for _, text := range nastyTexts {
		holder := core.Holder{Owner: text, Instance: text, Token: 5}
		record := core.Record{Key: text, State: core.StateUnknown, Reason: text, Note: text, Instance: text, Label: text, Value: []byte(text)}
		waiter := core.Waiter{Owner: text, Instance: text}
		shown := state{
			lock: core.Info{
				Name: text, Mode: core.ModeElection, Value: text, Holders: []core.Holder{holder}, Queue: []core.Waiter{waiter},
			},
			record: record,
		}
		for output, write := range map[string]func(env *environment) error{
			"show":        func(env *environment) error { return shown.print(env) },
			"show --json": func(env *environment) error { return env.printJSON(shown.inJSON()) },
			"ls --json": func(env *environment) error {
				return env.printJSON(entryInJSON(core.Entry{Name: text, Value: text, Holders: []core.Holder{holder}}))
			},
			"records --json": func(env *environment) error { return env.printJSON(recordInJSON(record, 1)) },
			"digest":         func(env *environment) error { return (&digestCommand{}).print(env, seal.Named{Name: text}, "00000000") },
			"error":          func(env *environment) error { env.tell(errors.New(text)); return nil },
		} {
			var out bytes.Buffer
			env := &environment{stdout: &stream{to: &out}, stderr: &out, flags: new(grammar)}
			if err := write(env); err != nil {
				t.Fatal(err)
			}
			isJSON := strings.HasSuffix(output, "--json")
			if !isJSON && out.Len() > 100_000 {
				t.Errorf("%s: %d bytes", output, out.Len())
			}
			if isJSON && (strings.Count(out.String(), "\n") != 1 || !json.Valid(out.Bytes())) {
				t.Errorf("%s: %.200q", output, out.String())
			}
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSuffix(line, "\n")
				if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(line) {
					t.Errorf("%s of %.20q: %.200q", output, text, line)
				}
				if output == "digest" && strings.HasPrefix(line, "holdfast: forged") {
					t.Errorf("%s: a forged line: %q", output, line)
				}
			}
		}
	}
}
