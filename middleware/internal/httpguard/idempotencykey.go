package httpguard

import "github.com/holdfast-go/holdfast/internal/httprecord"

// HeaderIdempotencyKey is the header field in which a client sends the key that it chose for a request.
const HeaderIdempotencyKey = "Idempotency-Key"

// ParseKeyField returns the key in the lines of a header field: see [httprecord.ParseKey]. The error is [ErrKeyRequired] if there
// are no lines, and [ErrKeyInvalid] for anything else. It does not repeat what the client sent.
func ParseKeyField(field string, lines []string) (string, error) {
	switch {
	case len(lines) == 0:
		return "", Missing("header:" + field)
	case len(lines) > 1:
		return "", KeyError(ErrKeyInvalid, "%s is there %d times", headerWords(field), len(lines))
	}
	key, fault := httprecord.ParseKey(lines[0])
	if fault != "" {
		return "", KeyError(ErrKeyInvalid, "%s %s", headerWords(field), fault)
	}
	return key, nil
}
