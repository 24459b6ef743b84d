package httpguard

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// KeyError is that of package httplock, which documents it.
func KeyError(kind error, format string, args ...any) error {
	return &keyError{kind, fmt.Sprintf(format, args...)}
}

// Missing is the [KeyError] of a request that lacks the value of the part of that name: "header:X-Cart".
func Missing(part string) error { return KeyError(ErrKeyRequired, "%s is missing", partWords(part)) }

// Repeated is the [KeyError] of a request that has several values for the part of that name: the guard and the handler
// might use different values.
func Repeated(part string, times int) error {
	return KeyError(ErrKeyInvalid, "%s is there %d times", partWords(part), times)
}

type keyError struct {
	kind error
	text string
}

func (e *keyError) Error() string { return e.kind.Error() + ": " + e.text }

func (e *keyError) Unwrap() error { return e.kind }

// toldOf returns as a sentence what err has to tell a client, "" if that is nothing.
func toldOf(err error) string {
	var told *keyError
	if !errors.As(err, &told) {
		return ""
	}
	first, size := utf8.DecodeRuneInString(told.text)
	return string(unicode.ToUpper(first)) + told.text[size:] + "."
}

// partWords says what the name of a part of a key means to a client.
func partWords(name string) string {
	if name == idempotencyKey {
		return headerWords(HeaderIdempotencyKey)
	}
	kind, rest, found := strings.Cut(name, ":")
	if !found {
		return name
	}
	switch kind {
	case "header":
		return headerWords(rest)
	case "cookie":
		return "the cookie " + rest
	case "query":
		return "the query parameter " + rest
	case "form":
		return "the form field " + rest
	case "json":
		return fmt.Sprintf("the JSON value at %q", rest)
	case "path":
		return "the path value " + rest
	}
	return name
}

func headerWords(field string) string { return "the header field " + field }
