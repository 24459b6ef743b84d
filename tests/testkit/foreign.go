package testkit

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// ForeignTexts are what a client or a producer may send, what another program may write to Redis, and what a server may reply.
var ForeignTexts = map[string]string{
	"escape": "\x1b[2J", "C1": "\u009b31m", "bidi": "\u202egnp.exe", "line": "a\nlevel=INFO msg=forged", "NUL": "\x00", "broken": "\xff\xfe",
	"long": strings.Repeat("\x1b\u202e", Rounds(1<<12, 1<<18)),
}

// WantVisible fails the test for a longer text, or one with what people cannot see.
func WantVisible(t testing.TB, text string, most int) {
	t.Helper()
	if len(text) > most {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(text) {
		t.Errorf("not visible: %.200q", text)
	}
}

// WantVisibleLines is WantVisible for each line of a text, of which there must be one.
func WantVisibleLines(t testing.TB, text string, most int) {
	t.Helper()
	for line := range strings.Lines(text) {
		WantVisible(t, strings.TrimSuffix(line, "\n"), most)
	}
	if text == "" {
		t.Error("there are no lines")
	}
}

// LogHandlers are the log handlers of package slog, at the level debug.
var LogHandlers = map[string]func(io.Writer) slog.Handler{
	"text": func(w io.Writer) slog.Handler {
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	},
	"JSON": func(w io.Writer) slog.Handler {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	},
}
