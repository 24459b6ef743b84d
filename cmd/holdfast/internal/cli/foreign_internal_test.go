package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
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

// TestForeignNamesKeepColumns: whatever the names of jobs and locks are, cron ls and top print one row for each, whose columns begin where
// those of the head do, and which is no wider than the terminal.
func TestForeignNamesKeepColumns(t *testing.T) {
	t.Parallel()
	names := append(slices.Clone(nastyTexts), "backup", "a\tb", "a\vb\fc", "\u0301accent", "e\u0301"+strings.Repeat("\u0301", 300), strings.Repeat("x", 512),
		strings.Repeat("订", 170), "🙂👨\u200d👩\u200d👧 🇩🇪", "☎\ufe0f", "\u1100\u1161", "नि", " ", "")
	jobs, locks := make([]cronlock.JobInfo, 0, len(names)), make([]core.Entry, 0, len(names))
	for _, name := range names {
		jobs = append(jobs, cronlock.JobInfo{Name: name, Spec: "@SPEC", Zone: name, Service: name, Paused: true, PausedBy: name})
		locks = append(locks, core.Entry{Name: name, Mode: "@MODE", Value: name, Holds: 1})
	}
	unfit := func(line string, width int) bool {
		return strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || width > 0 && runewidth.StringWidth(line) > width
	}
	commands := regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]") // of top itself
	for _, width := range []int{0, 60, 80, 200} {
		view := &top{env: &environment{stdout: &stream{to: new(bytes.Buffer)}}, order: "name", entries: locks, width: width, height: len(names) + 4, chosen: 3}
		var list bytes.Buffer
		jobTable(jobs).write(&list, width, false)
		shown := func() []string { return strings.Split(commands.ReplaceAllString(view.draw(), ""), "\r\n") }
		for output, test := range map[string]struct {
			lines        []string
			column, cell string
		}{
			"cron ls": {strings.Split(strings.TrimSuffix(list.String(), "\n"), "\n"), "SPEC", "@SPEC"},
			"top":     {shown()[2 : len(names)+3], "MODE", "@MODE"},
		} {
			if len(test.lines) != len(names)+1 {
				t.Fatalf("%s, %d columns: %d lines", output, width, len(test.lines))
			}
			head, _, _ := strings.Cut(test.lines[0], test.column)
			for _, line := range test.lines[1:] {
				before, _, found := strings.Cut(line, test.cell)
				if !found || runewidth.StringWidth(before) != runewidth.StringWidth(head) {
					t.Errorf("%s, %d columns: the second column of %.200q begins elsewhere than in the head", output, width, line)
				}
				if unfit(line, width) {
					t.Errorf("%s, %d columns: %.200q", output, width, line)
				}
			}
		}
		for i, name := range names { // the question, and the filter in the head
			view.chosen = i
			view.press("u")
			view.filter = name
			lines := shown()
			if foot := lines[len(lines)-1]; view.prompt == nil || unfit(foot, width) || !strings.HasSuffix(foot, "Type yes: ") {
				t.Errorf("%d columns: the question %.200q", width, foot)
			}
			if unfit(lines[0], width) {
				t.Errorf("%d columns: the head %.200q", width, lines[0])
			}
			view.prompt, view.filter = nil, ""
		}
	}
}
