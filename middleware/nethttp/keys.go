package httplock

import (
	"net/http"

	"github.com/holdfast-go/holdfast/middleware"
)

// KeyFunc makes the key of a request. Write your own with [NewKey]:
//
//	import httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//
//	func(r *http.Request) (httplock.Key, error) {
//		return httplock.NewKey("tenant", tenantOf(r))
//	}
//
// An error that is [ErrKeyRequired], [ErrKeyInvalid] or [ErrScopeRequired] refuses the request with 400, 400 or
// 401; any other one, and [ErrNoRoute], with 500.
//
// The request is a shallow copy of the one that came in, which the handler gets too. Its body is not read yet,
// and whoever reads it takes it from the handler: see [ByForm] and [ByJSON].
type KeyFunc func(r *http.Request) (Key, error)

// Key tells apart what must not run at the same time.
type Key = middleware.Key

// Errors of key functions, for errors.Is.
var (
	ErrKeyRequired   = middleware.ErrKeyRequired
	ErrKeyInvalid    = middleware.ErrKeyInvalid
	ErrScopeRequired = middleware.ErrScopeRequired
	ErrNoRoute       = middleware.ErrNoRoute
)

// KeyError returns an error of a key function whose text is told to the client, see [middleware.KeyError].
func KeyError(kind error, format string, args ...any) error {
	return middleware.KeyError(kind, format, args...)
}

// NewKey returns a key of one named value. A client whose request lacks the value is told the name. The error is
// [ErrKeyRequired] if the value is empty, and [ErrKeyInvalid] if it has more than 255 bytes.
func NewKey(name, value string) (Key, error) { return middleware.NewKey(name, value) }

// Join returns the key of all keys together, as [Keys] makes it: for business code that has no request, to name
// what a request has left behind. Join [RouteKey], [PrincipalKey], [PathKey] and [NewKey] in the order in which
// the guard has them. The error is [ErrKeyRequired] if there are none, or one is the zero Key.
func Join(keys ...Key) (Key, error) { return middleware.Join(keys...) }

// Keys joins keys: requests are told apart by all of them together. It fails with the first error of fns.
// Panics if there are no functions or one is nil.
func Keys(fns ...KeyFunc) KeyFunc { return middleware.Keys(fns...) }

// FirstOf returns the key of the first of fns that finds one: the user's if one is logged in, else that of a
// cookie. It goes on after [ErrKeyRequired] and [ErrScopeRequired] only, and if all fail so, with the error of
// the first. Panics if there are no functions or one is nil.
//
// Parts of keys are named, so a value from one source never meets the same value from another. This also means
// that a client which may leave out a source chooses its key: its two requests run at the same time if one has
// the source and the other has not.
func FirstOf(fns ...KeyFunc) KeyFunc { return middleware.FirstOf(fns...) }

// Constant returns the same key for all requests: only one of them runs at a time. Joined with others it
// keeps guards apart whose keys would meet. Panics if value is empty or has more than 255 bytes.
func Constant(value string) KeyFunc {
	key, err := NewKey("constant", value)
	if err != nil {
		panic(err)
	}
	return func(*http.Request) (Key, error) { return key, nil }
}

// Unscoped returns the same key for all requests, to say where a scope is asked for that all clients share one:
// whoever sends the key of another gets what was meant for the other. Use it only where all clients are one, or
// what they get is for all.
func Unscoped() KeyFunc {
	return func(*http.Request) (Key, error) { return NewKey("unscoped", "all") }
}
