// Package foreign makes text that others have written fit to be shown: what is stored in Redis, what a server replies, and what a
// request has. Such a text may have megabytes, control characters that a terminal obeys, line breaks that forge a line of a log, and
// characters that reverse what is read.
package foreign

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns a text on one line, as people read it: characters that cannot be seen are escaped as in Go, such as \n, \x1b and
// \u202e. Quotes and backslashes stay. A text that is longer than most bytes is cut, and says how long it was. So the result has at
// most four times as many bytes, and some more.
func Line(text string, most int) string {
	shown, rest := cut(text, most)
	if rest == "" && printable(text) {
		return text
	}
	var line strings.Builder
	for len(shown) > 0 {
		r, size := utf8.DecodeRuneInString(shown)
		if r == utf8.RuneError && size == 1 || !visible(r) {
			line.WriteString(escaped(shown[:size]))
		} else {
			line.WriteString(shown[:size])
		}
		shown = shown[size:]
	}
	line.WriteString(rest)
	return line.String()
}

// Quote returns a text in quotes as in Go, in which each character can be seen. A longer text than most bytes is cut, and says how
// long it was.
func Quote(text string, most int) string {
	shown, rest := cut(text, most)
	var quoted strings.Builder
	for _, r := range strconv.Quote(shown) {
		if visible(r) {
			quoted.WriteRune(r)
		} else {
			quoted.WriteString(escaped(string(r)))
		}
	}
	return quoted.String() + rest
}

// Name returns a name as it is, or as [Quote] returns it if a part of the name cannot be seen, such as a space at its end, or looks like
// an escaped or quoted one.
func Name(text string, most int) string {
	if len(text) <= most && printable(text) && !strings.Contains(text, `\`) && !strings.HasPrefix(text, `"`) && strings.TrimSpace(text) == text {
		return text
	}
	return Quote(text, most)
}

// escaped returns a character, or a byte that is none, as Go escapes it: strconv.Quote does not escape all that people do not see.
func escaped(char string) string {
	quoted := strconv.QuoteToASCII(char)
	return quoted[1 : len(quoted)-1]
}

// Error returns an error with the text of err as Line returns it. The result wraps err, and is err if that has such a text already.
func Error(err error, most int) error {
	text := err.Error()
	if line := Line(text, most); line != text {
		return &lineError{line, err}
	}
	return err
}

type lineError struct {
	line string
	err  error
}

func (e *lineError) Error() string { return e.line }

func (e *lineError) Unwrap() error { return e.err }

// cut returns the first most bytes of a text, or fewer so that no character is cut, and what stands for the rest.
func cut(text string, most int) (shown, rest string) {
	if len(text) <= most {
		return text, ""
	}
	shown = text[:most]
	for i := 0; i < utf8.UTFMax && len(shown) > 0 && !utf8.RuneStart(text[len(shown)]); i++ {
		shown = shown[:len(shown)-1]
	}
	return shown, fmt.Sprintf("... (%d bytes)", len(text))
}

// printable returns true for a text that Line returns as it is.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !visible(r) })
}

// visible returns true for a character that people see, and for a space. Format characters such as U+202E are none, and neither are
// letters, marks and symbols that look like nothing, such as the Hangul filler U+3164.
func visible(r rune) bool {
	const blankBraille, nullNotehead = '\u2800', '\U0001d159'
	return unicode.IsPrint(r) && r != blankBraille && r != nullNotehead &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// JSON returns a JSON text with the characters of strings that cannot be seen as \uXXXX. The value is the same. Line breaks and
// indentation between the values stay.
func JSON(text []byte) []byte {
	if !strings.ContainsFunc(string(text), hidden) {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !hidden(r):
			out = append(out, text[:size]...)
		case r > 0xFFFF: // a pair of surrogates
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out
}

// hidden returns true for what JSON escapes. Outside of strings, JSON has ASCII only.
func hidden(r rune) bool { return r >= 0x7F && !visible(r) }
