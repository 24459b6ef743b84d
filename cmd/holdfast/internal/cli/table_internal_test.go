package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// TestTable: a table fits the terminal, and no name can send commands to it.
func TestTable(t *testing.T) {
	t.Parallel()
	table := &table{head: []string{"NAME", "N"}}
	table.add(strings.Repeat("x", 100), "1")
	table.add("red\x1b[31m\nnext\xff", "22")
	table.add("订单", "3")
	var out strings.Builder
	table.write(&out, 30, false)
	for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
		if len([]rune(line)) > 30 || strings.Contains(line, "\x1b") || !utf8.ValidString(line) {
			t.Errorf("line %d: %q", i, line)
		}
	}
	if !strings.Contains(out.String(), "…") || !strings.Contains(out.String(), `red\x1b[31m\nnext\xff`) {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	table.write(&out, 0, true)
	if !strings.Contains(out.String(), strings.Repeat("x", 100)) || !strings.Contains(out.String(), "\x1b[1m") {
		t.Errorf("%s", out.String())
	}
}

// TestNamesDiffer: the names of two locks are not shown as one.
func TestNamesDiffer(t *testing.T) {
	t.Parallel()
	for output, write := range map[string]func(env *environment, name string) error{
		"ls": func(env *environment, name string) error {
			lockTable([]core.Entry{{Name: name}}, time.Time{}).print(env)
			return nil
		},
		"cron ls": func(env *environment, name string) error {
			jobTable([]cronlock.JobInfo{{Name: name}}).print(env)
			return nil
		},
		"show": func(env *environment, name string) error { return state{lock: core.Info{Name: name}}.print(env) },
		"digest": func(env *environment, name string) error {
			return (&digestCommand{}).print(env, seal.Named{Name: name}, "")
		},
	} {
		rows := map[string]string{}
		for _, name := range []string{"\x1b[31m", `\x1b[31m`, "backup", "backup ", "backup\u3164", "backup\u2800", "backup\u115f"} {
			var out bytes.Buffer
			if err := write(&environment{stdout: &stream{to: &out}, flags: new(grammar)}, name); err != nil {
				t.Fatal(err)
			}
			shown := strings.Join(strings.Fields(out.String()), " ") // a blank more is not seen
			if other, is := rows[shown]; is {
				t.Errorf("%s: %q and %q: %s", output, name, other, shown)
			}
			rows[shown] = name
			if strings.ContainsAny(shown, "\u3164\u2800\u115f\x1b") {
				t.Errorf("%s: %q: %q", output, name, shown)
			}
		}
	}
}

// TestShort writes durations in few characters.
func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1: "never", 0: "0.0s", 1500 * time.Millisecond: "1.5s", 59 * time.Second: "59s",
		61 * time.Second: "1m01s", 25 * time.Hour: "25h00m", 100 * time.Hour: "4d",
	} {
		if got := short(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
