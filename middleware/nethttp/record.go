package httplock

import (
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// Guard is a guard of [NewOnce] or [NewIdempotent] as a value. Wrap is what [Once] and [Idempotent] return. The
// other methods are for operators: Peek reads the record of a key, Resolve records that a request
// was done, Forget allows another run, and Records lists the records of a scope of Idempotent. They use the secret,
// the codec and the parts of the guard's keys. The zero Guard guards nothing: its methods return errors, or panic.
type Guard struct {
	*httpguard.Ledger
	wrap func(http.Handler) http.Handler
}

// Wrap returns the guarded handler. It panics if the handler is nil, and if g is the zero Guard.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	if g == nil || g.wrap == nil {
		panic("holdfast: the guard is the zero Guard: make it with NewOnce or NewIdempotent")
	}
	return g.wrap(next)
}

// IdempotencyKey returns the key that [Idempotent] joins to its scope for a client's Idempotency-Key, for [Join]: after
// the keys of the scope.
func IdempotencyKey(value string) (Key, error) { return httpguard.IdempotencyKey(value) }

// Record is the record of a key behind a [Guard].
type Record = httpguard.Record

// Errors of a [Guard], for errors.Is.
var (
	ErrNoRecord = httpguard.ErrNoRecord
	ErrKeyShape = httpguard.ErrKeyShape
)

// ReadResponse reads the answer that an operator has written for a client: a status line, header fields, an empty line, and
// the body, which is everything after that. Lines may end with LF or CRLF. A status line of HTTP/2 is read too, as curl -i
// prints it. Date is left out.
//
// ReadResponse returns an error for a status that no guard replays (below 200), for a body that is longer than limit or that
// the status cannot have, for a Content-Length that is not that of the body, for a body without Content-Type, and for fields that belong to one connection,
// client or request.
func ReadResponse(from io.Reader) (*Response, error) {
	return httpguard.ReadResponse(from, httpguard.IdempotentConfig().RecordLimit)
}

// ParseIdempotencyKey returns the key in the field lines of an Idempotency-Key header: a String of RFC 9651 between 1
// and 255 bytes of visible ASCII. Parameters behind it are ignored if they follow RFC 9651; their values are not decoded.
// The key may be written without quotes, as many clients do: "k" and k are the same key. A key without quotes has no quotes, backslashes, spaces, commas, semicolons and parameters.
//
// The error is [ErrKeyRequired] if there are no lines, and [ErrKeyInvalid] for anything else. ParseIdempotencyKey
// never cuts or skips a part to make a key of the rest. The error does not repeat what the client sent.
func ParseIdempotencyKey(lines []string) (string, error) {
	return httpguard.ParseIdempotencyKey(lines)
}

// IsRecordName reports whether name is that of a record of [Once] or [Idempotent], as [core.Client.Records] lists them.
func IsRecordName(name string) bool { return httpguard.IsRecordName(name) }

// DecodeResponse reads the value of a record of a guard without a [Codec]. It fails on anything that could not be replayed, and ignores
// what a later version may add to the record. It leaves out fields that no guard records, since the record
// may have been changed in Redis. The body is a part of b.
func DecodeResponse(value []byte) (*Response, error) { return httpguard.DecodeResponse(value) }
