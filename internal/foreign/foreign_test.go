package foreign_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/foreign"
)

// texts are what others may write.
var texts = []string{
	"", "plain", "中文 текст 🔒", `"quoted" \ back`, "a\nb\r\n\tc", "\x1b[2J\x1b]0;title\x07", "\u009b31m", "\u202ereversed\u2066", "\u2028\u2029",
	"\x00\x7f", "\xff\xfe broken", "\u200b\ufeff\u00ad", fillers, "back\\slash", " blank ", "\U000e0041 tag", "\ufffd", strings.Repeat("\x1b\u202e", 100_000), strings.Repeat("é", 500_000),
}

// fillers are letters, marks and symbols that look like nothing.
const fillers = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u2800\u3164\ufe0f\uffa0\U0001d159\U000e0100"

// most is the bound in these tests.
const most = 100

func TestLine(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		line := foreign.Line(text, most)
		check(t, text, line)
		if len(line) > 4*most+40 {
			t.Errorf("%.20q: %d bytes", text, len(line))
		}
		if len(text) > most && !strings.Contains(line, "bytes)") {
			t.Errorf("%.20q: does not tell that it is cut: %q", text, line)
		}
	}
	for text, want := range map[string]string{
		"x": "x", "say \"no\" \\": "say \"no\" \\", "a\nb": `a\nb`, "\x1b[0m": `\x1b[0m`, "\u202e": `\u202e`, "\u009b": `\u009b`, "\xff": `\xff`, "🔒 é": "🔒 é",
	} {
		if line := foreign.Line(text, most); line != want {
			t.Errorf("%q became %s, want %s", text, line, want)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		quoted := foreign.Quote(text, most)
		if check(t, text, quoted); len(quoted) > 6*most+40 || quoted[0] != '"' {
			t.Errorf("%.20q: %d bytes: %s", text, len(quoted), quoted)
		}
	}
	if quoted := foreign.Quote("éé", 3); quoted != `"é"... (4 bytes)` {
		t.Errorf("cut within a character: %s", quoted)
	}
}

// TestName: names that look the same are shown in different ways, and a plain one as it is.
func TestName(t *testing.T) {
	t.Parallel()
	shown := map[string]string{}
	for _, name := range []string{
		"", "backup", "backup ", " backup", `"backup "`, "\x1b[31m", `\x1b[31m`, `"\x1b[31m"`, "backup\u3164", `backup\u3164`, "backup\u2800",
		"backup\u115f", "backup\ufe0f", "a b", "a\u3164b", "\xff", `\xff`,
	} {
		s := foreign.Name(name, most)
		if other, is := shown[s]; is || strings.TrimSpace(s) != s {
			t.Errorf("%q and %q are shown as %s", name, other, s)
		}
		check(t, name, s)
		shown[s] = name
	}
	for _, name := range []string{"backup", "中文 текст 🔒", `say "no"`, "http:{a}:b"} {
		if s := foreign.Name(name, most); s != name {
			t.Errorf("%q is shown as %s", name, s)
		}
	}
}

// TestJSON: the value stays, and each character can be seen.
func TestJSON(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		before, err := json.MarshalIndent(map[string]string{"text": text}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		escaped := foreign.JSON(before)
		check(t, text, strings.ReplaceAll(string(escaped), "\n", ""))
		var was, is map[string]string
		if json.Unmarshal(before, &was) != nil || json.Unmarshal(escaped, &is) != nil || was["text"] != is["text"] {
			t.Errorf("%.20q: another value: %.100q", text, escaped)
		}
	}
}

// check fails the test for a result that is no UTF-8, or has a character that cannot be seen.
func check(t *testing.T, text, result string) {
	t.Helper()
	if at := strings.IndexFunc(result, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(fillers, r) }); at >= 0 || !utf8.ValidString(result) {
		t.Errorf("%.20q: %.100q is not visible", text, result)
	}
}

// TestError: an error of another text is one line, and still the same error for errors.Is.
func TestError(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		err := errors.New(text)
		shown := foreign.Error(err, most)
		check(t, text, shown.Error())
		if shown.Error() != foreign.Line(text, most) || !errors.Is(shown, err) {
			t.Errorf("%.20q: %q", text, shown)
		}
	}
	if plain := errors.New("plain"); foreign.Error(plain, most) != plain {
		t.Error("a text that can be shown got another error")
	}
}
