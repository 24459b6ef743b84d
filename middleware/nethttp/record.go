package httplock

import (
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
