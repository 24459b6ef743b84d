package httplock

import (
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast/middleware"
)

// Guard is a guard of [NewOnce] or [NewIdempotent] as a value. Wrap is what [Once] and [Idempotent] return. The
// methods of its [middleware.Ledger] are for operators: Peek reads the record of a key, Resolve records that a request
// was done, Forget allows another run, and Records lists the records of a scope of Idempotent. They use the secret,
// the codec and the parts of the guard's keys. The zero Guard guards nothing: its methods return errors, or panic.
type Guard struct {
	*middleware.Ledger
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
func IdempotencyKey(value string) (Key, error) { return middleware.IdempotencyKey(value) }

// Record is the record of a key behind a [Guard].
type Record = middleware.Record

// Errors of a [Guard], for errors.Is.
var (
	ErrNoRecord = middleware.ErrNoRecord
	ErrKeyShape = middleware.ErrKeyShape
)

// ReadResponse reads the answer that an operator has written for a client, for [Record].Resolve: a status line, header fields, an
// empty line, and the body of at most 256 KiB. See [middleware.ReadResponse].
func ReadResponse(from io.Reader) (*Response, error) {
	return middleware.ReadResponse(from, middleware.IdempotentConfig().RecordLimit)
}

// ParseIdempotencyKey returns the key in the field lines of an Idempotency-Key header, for [IdempotencyKey]. See
// [middleware.ParseIdempotencyKey].
func ParseIdempotencyKey(lines []string) (string, error) {
	return middleware.ParseIdempotencyKey(lines)
}

// IsRecordName reports whether name is that of a record of [Once] or [Idempotent], as [core.Client.Records] lists them.
func IsRecordName(name string) bool { return middleware.IsRecordName(name) }

// DecodeResponse reads the value of a record without a codec. See [middleware.DecodeResponse].
func DecodeResponse(value []byte) (*Response, error) { return middleware.DecodeResponse(value) }
