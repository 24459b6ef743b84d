package httplock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseKeyField(t *testing.T) {
	t.Parallel()
	const uuid = "8e03978e-40d5-43dd-bc93-6894a57f9324"
	long := strings.Repeat("k", 255)
	for line, want := range map[string]string{
		`"` + uuid + `"`:                       uuid,
		uuid:                                   uuid,
		`  "k"  `:                              "k",
		`  k  `:                                "k",
		`"a\"b\\c"`:                            `a"b\c`,
		`"\\\""`:                               `\"`,
		`"a,b;c"`:                              `a,b;c`,
		`"!~"`:                                 "!~",
		"!#+-:<[]~":                            "!#+-:<[]~",
		`"` + long + `"`:                       long,
		long:                                   long,
		`"` + strings.Repeat(`\"`, 255) + `"`:  strings.Repeat(`"`, 255),
		`"k";a`:                                "k",
		`"k";a=1;  b=-12.5;*c_.-*=tok/en`:      "k",
		`"k";a="x \" y"  `:                     "k",
		`"k";a=:aGk=:;b=?1;c=@-1;d=%"f%c3%bc"`: "k",
	} {
		parsesTo(t, line, want)
	}
}

// parsesTo wants the key, or that the line is refused if it is empty.
func parsesTo(t *testing.T, line string, want string) {
	t.Helper()
	got, err := parseKeyField(HeaderIdempotencyKey, []string{line})
	if got != want || (want == "") != errors.Is(err, ErrKeyInvalid) {
		t.Errorf("%q: %q, %v, want %q", line, got, err, want)
	}
}

func TestParseKeyFieldRefuses(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "   ", `""`, `"" `, `"`, `"k`, `k"`, `k"k`, `'k k'`, `"a b"`, "a b", "a,b", "a;b", `a\b`, `"a\b"`, `"a\`,
		`"a" "b"`, `"a","b"`, `"a", "b"`, `"a"b`, `"a";`, `"a";A`, `"a";1`, `"a" ;b`, `"a";b=`, `"a";b =1`, `"a";b= 1`,
		`"a";b=1;`, `"a";b=1.`, `"a";b=1.2345`, `"a";b=1234567890123456`, `"a";b=?2`, `"a";b=@1.5`, `"a";b=:a b:`,
		`"a";b=%"%C3"`, `"a";b=%"%c"`, `"a";b="`, `"a";b=(1)`, "\"a\tb\"", "a\tb", "\tk", "k\n", "\"k\"\n", "\"k\x7f\"",
		"k\x7f", "k\x00", "\"ü\"", "ü", "\xff", strings.Repeat("k", 256), `"` + strings.Repeat("k", 256) + `"`,
		`"k";a="` + strings.Repeat("x", 1024) + `"`,
	} {
		parsesTo(t, line, "")
	}
}

// TestLongKeyField: whatever the length of the line, the answer names the one limit that a key has.
func TestLongKeyField(t *testing.T) {
	t.Parallel()
	for _, n := range []int{256, 1024, 1025, 3000} {
		_, err := parseKeyField(HeaderIdempotencyKey, []string{strings.Repeat("k", n)})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes", n)) || !strings.Contains(err.Error(), "at most 255 are allowed") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestParseKeyFieldLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		lines []string
		want  error
	}{
		{nil, ErrKeyRequired},
		{[]string{}, ErrKeyRequired},
		{[]string{`"k"`}, nil},
		{[]string{`"k"`, `"k"`}, ErrKeyInvalid},
		{[]string{`"k"`, ""}, ErrKeyInvalid},
	} {
		if _, err := parseKeyField(HeaderIdempotencyKey, test.lines); !errors.Is(err, test.want) {
			t.Errorf("%q: %v, want %v", test.lines, err, test.want)
		}
	}
}

func TestIdempotencyKeyErrorsTellWhatButNotTheKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ line, says string }{
		{"", "empty"},
		{`""`, "empty"},
		{"secret secret", "visible ASCII"},
		{`"secret`, "visible ASCII"},
		{`"` + strings.Repeat("secret", 43) + `"`, "258 bytes"},
	} {
		_, err := parseKeyField(HeaderIdempotencyKey, []string{test.line})
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want an error that says %q and not the key", test.line, err, test.says)
		}
	}
}

// TestMalformedKeysNameTheCharacter: a client that reads the answer can mend its key.
func TestMalformedKeysNameTheCharacter(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"a b":        "has a space: ",
		"a,b":        "has a comma, which",
		"a;b":        "has a semicolon, which",
		`a"b`:        "has a quote, which",
		`a\b`:        "has a backslash, which",
		"a\tb":       "has the control character 0x09: ",
		"a\x7fb":     "has the control character 0x7f: ",
		"ä":          "has a character outside ASCII: ",
		`"a b"`:      "has a space: ",
		`"a\b"`:      "has a backslash in front of neither",
		`"a`:         "is not a quoted string, because the closing quote is missing: ",
		`"a" "b"`:    "goes on behind the closing quote: ",
		`"a";A=1`:    "goes on behind the closing quote: ",
		"\"\u2028\"": "has a character outside ASCII: ",
	} {
		_, err := parseKeyField(HeaderIdempotencyKey, []string{line})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "quotes around it are optional") {
			t.Errorf("%q: %v, want %q", line, err, says)
		}
	}
}

// FuzzParseKeyField wants every key that was read, written in quotes, to be read as the same one.
func FuzzParseKeyField(f *testing.F) {
	for _, line := range []string{"", "k", `"k"`, ` "a\"\\b";p=1;q="x" `, `"a","b"`, `"a";b=:aGk=:`, `a b`, "ü"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		key, err := parseKeyField(HeaderIdempotencyKey, []string{line})
		if err != nil {
			if !errors.Is(err, ErrKeyInvalid) || key != "" {
				t.Fatalf("key %q, error %v", key, err)
			}
			return
		}
		if len(key) < 1 || len(key) > 255 {
			t.Fatalf("%d bytes", len(key))
		}
		for _, c := range []byte(key) {
			if c < 0x21 || c > 0x7e {
				t.Fatalf("%q has byte %#x", key, c)
			}
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := parseKeyField(HeaderIdempotencyKey, []string{quoted}); err != nil || again != key {
			t.Fatalf("%q becomes %q, %v", quoted, again, err)
		}
	})
}
