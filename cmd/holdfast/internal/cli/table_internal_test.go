package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
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
	rows := map[string]string{}
	for _, name := range []string{"\x1b[31m", `\x1b[31m`, "backup", "backup ", "backup\u3164", "backup\u2800", "backup\u115f"} {
		var out strings.Builder
		lockTable([]core.Entry{{Name: name}}, time.Time{}).write(&out, 0, false)
		row := strings.Fields(out.String()[strings.Index(out.String(), "\n")+1:])
		key := strings.Join(row, " ")
		if other, is := rows[key]; is {
			t.Errorf("%q and %q: %s", name, other, key)
		}
		rows[key] = name
		if strings.ContainsAny(key, "\u3164\u2800\u115f\x1b") {
			t.Errorf("%q: %q", name, key)
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
