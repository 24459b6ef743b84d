package httpguard

import (
	"errors"
	"fmt"
	"slices"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// Errors of the key of a request. Check them with errors.Is. Functions that make keys wrap one of them; any other
// error of theirs counts as the server's own failure.
var (
	// ErrKeyRequired says that the request lacks a part of its key: 400.
	ErrKeyRequired = errors.New("holdfast: no key in the request")

	// ErrKeyInvalid says that a part of the key is in a form that is refused, too long, or occurs twice: 400.
	ErrKeyInvalid = errors.New("holdfast: invalid key in the request")

	// ErrScopeRequired says that no user is known for the request: 401. Authentication, which belongs around the
	// guard, should have refused it.
	ErrScopeRequired = errors.New("holdfast: no principal for the key of the request")

	// ErrNoRoute says that the key needs a part of the route that is not known at the place of the guard: 500, since
	// every other request would fail too. Wrap the handlers in the router, not the router. A router that sets neither
	// Pattern nor path values of a request has to be helped: the middleware for gorilla/mux is in docs/http.md.
	ErrNoRoute = errors.New("holdfast: route not known here: wrap the handler, not the mux")
)

// idempotencyKey is the name of the part that a client has chosen. It comes last, behind its scope.
const idempotencyKey = "idempotency-key"

// Key identifies what must not run at the same time. It is a list of named values and made by [NewKey] and [Join]. The
// zero Key is none: it never locks anything.
type Key struct {
	parts []part
}

type part struct{ name, value string }

// NewKey returns a key of one part. The name says what the value is ("header:X-Cart"), and distinguishes equal values
// of different meaning. A client whose request lacks the value gets the name in the answer. The value comes from the
// request. The error is [ErrKeyRequired] if it is empty, and [ErrKeyInvalid] above 255 bytes.
func NewKey(name, value string) (Key, error) {
	switch {
	case value == "":
		return Key{}, KeyError(ErrKeyRequired, "%s is empty", partWords(name))
	case len(value) > httprecord.MaxKey:
		return Key{}, KeyError(ErrKeyInvalid, "%s has %d bytes, at most %d are allowed",
			partWords(name), len(value), httprecord.MaxKey)
	}
	return Key{parts: []part{{name, value}}}, nil
}

// Join returns a key of the parts of all keys, in order. The error is [ErrKeyRequired] if one of them is the zero Key,
// or if there are none: if a part is missing, many requests must not share the rest.
func Join(keys ...Key) (Key, error) {
	var joined Key
	for _, k := range keys {
		if k.IsZero() {
			return Key{}, fmt.Errorf("%w: a part is missing", ErrKeyRequired)
		}
		joined.parts = append(joined.parts, k.parts...)
	}
	if joined.IsZero() {
		return Key{}, fmt.Errorf("%w: it has no parts", ErrKeyRequired)
	}
	return joined, nil
}

// IsZero returns true if k is no key.
func (k Key) IsZero() bool { return len(k.parts) == 0 }

// Equal returns true if both have the same parts in the same order.
func (k Key) Equal(other Key) bool { return slices.Equal(k.parts, other.parts) }

// Hash returns 43 characters of base64url which are the same for equal keys only. The key cannot be read from the
// hash, but a reader who guesses all parts can recognise it: see [Key.HashWith].
func (k Key) Hash() string { return k.HashWith(nil) }

// HashWith is [Key.Hash] with a secret. Without the secret, a reader of Redis cannot recognise a user's number or mail
// address by hashing all possible ones. All instances must have the same secret. Another secret makes other names of
// locks and records. HashWith returns Hash if secret is empty.
func (k Key) HashWith(secret []byte) string {
	texts := make([]string, 0, 16) // of most keys, on the stack
	for _, p := range k.parts {
		texts = append(texts, p.name, p.value)
	}
	return guards.Hash(secret, texts...)
}

// Name returns the name of the lock and of the record that the guards make of the key with a secret, see [WithKeySecret]: for
// operators. An empty secret is none.
func (k Key) Name(secret []byte) string { return k.record(secret) }

// record is the name of the key's record. The records of one scope share a pair of braces, so that they can be counted.
func (k Key) record(secret []byte) string {
	last := len(k.parts) - 1
	if last < 1 || k.parts[last].name != idempotencyKey {
		return httprecord.Prefix + k.HashWith(secret)
	}
	return httprecord.Prefix + "{" + Key{parts: k.parts[:last]}.HashWith(secret) + "}:" + k.HashWith(secret)
}

// String returns the hash, so that no value gets into a log by accident.
func (k Key) String() string { return k.Hash() }

// GoString returns the hash, as [Key.String] does.
func (k Key) GoString() string { return "httpguard.Key(" + k.Hash() + ")" }
