package httplock

import (
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// KeyFunc makes the key of a request. Write your own with [NewKey]:
//
//	import httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//
//	func(r *http.Request) (httplock.Key, error) {
//		return httplock.NewKey("tenant", tenantOf(r))
//	}
//
// If the error is [ErrKeyRequired], [ErrKeyInvalid] or [ErrScopeRequired], the guard refuses the request with 400, 400
// or 401. It refuses any other error, and [ErrNoRoute], with 500.
//
// The request is a shallow copy of the one that came in, which the handler gets too. Its body is not read yet. A
// KeyFunc that reads it takes it from the handler: see [ByForm] and [ByJSON]. A guard of another framework hands on a copy in
// which Pattern, path values and context values are the framework's, so one KeyFunc serves all of them.
type KeyFunc func(r *http.Request) (Key, error)

// Key identifies what must not run at the same time.
type Key = httpguard.Key

// Errors of key functions, for errors.Is.
var (
	ErrKeyRequired   = httpguard.ErrKeyRequired
	ErrKeyInvalid    = httpguard.ErrKeyInvalid
	ErrScopeRequired = httpguard.ErrScopeRequired
	ErrNoRoute       = httpguard.ErrNoRoute
)

// KeyError returns an error of a key function that is kind, [ErrKeyRequired] or [ErrKeyInvalid]. Its text goes to the
// client in the detail of the problem: what the request lacks, or what is wrong with it. Write a constant text, like
// "the header field X-Cart is missing". It must not repeat what a client has sent.
func KeyError(kind error, format string, args ...any) error {
	return httpguard.KeyError(kind, format, args...)
}

// NewKey returns a key of one named value. A client whose request lacks the value gets the name in the answer. The
// error is [ErrKeyRequired] if the value is empty, and [ErrKeyInvalid] if it has more than 255 bytes.
func NewKey(name, value string) (Key, error) { return httpguard.NewKey(name, value) }

// Join returns the key of all keys together, as [Keys] makes it. It is for business code without a request, to
// identify what a request has left. Join [RouteKey], [PrincipalKey], [PathKey] and [NewKey] in the order in which the
// guard has them. The error is [ErrKeyRequired] if there are none, or one is the zero Key.
func Join(keys ...Key) (Key, error) { return httpguard.Join(keys...) }

// Keys joins keys: all of them together identify a request. It fails with the first error of fns. Keys panics if there
// are no functions or one is nil.
func Keys(fns ...KeyFunc) KeyFunc { return httpguard.Keys(fns...) }

// FirstOf returns the key of the first of fns that finds one: the user's if a user is logged in, else that of a
// cookie. It tries the next one only after [ErrKeyRequired] and [ErrScopeRequired]. If all fail so, it returns the
// error of the first. FirstOf panics if there are no functions or one is nil.
//
// Parts of keys are named, so a value from one source never equals the same value from another. So a client that may
// leave out a source chooses its key: its two requests run at the same time if one has the source and the other has
// not.
func FirstOf(fns ...KeyFunc) KeyFunc { return httpguard.FirstOf(fns...) }

// Constant returns the same key for all requests: only one of them runs at a time. Joined with other keys, it
// distinguishes guards whose keys would be equal. Constant panics if value is empty or has more than 255 bytes.
func Constant(value string) KeyFunc {
	key, err := NewKey("constant", value)
	if err != nil {
		panic(err)
	}
	return func(*http.Request) (Key, error) { return key, nil }
}

// Unscoped returns the same key for all requests. Use it as a scope that all clients share. A client that sends the
// key of another client gets that client's answer. So use it only if all clients are one, or if the answers are
// public.
func Unscoped() KeyFunc {
	return func(*http.Request) (Key, error) { return NewKey("unscoped", "all") }
}
