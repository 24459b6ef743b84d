package httplock

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/middleware"
)

// KeyFunc makes the key of a request. Write your own with [NewKey]:
//
//	func(r *http.Request) (httplock.Key, error) {
//		return httplock.NewKey("tenant", tenantOf(r))
//	}
//
// An error that is [ErrKeyRequired], [ErrKeyInvalid] or [ErrScopeRequired] refuses the request with 400, 400 or
// 401; any other one, and [ErrNoRoute], with 500. The body of the request is not read yet.
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

// NewKey returns a key of one named value. The error is [ErrKeyRequired] if the value is empty, and
// [ErrKeyInvalid] if it has more than 255 bytes.
func NewKey(name, value string) (Key, error) { return middleware.NewKey(name, value) }

// Keys joins keys: requests are told apart by all of them together. It fails with the first error of fns.
// Panics if there are no functions or one is nil.
func Keys(fns ...KeyFunc) KeyFunc {
	if len(fns) == 0 {
		panic("holdfast: Keys: no key functions")
	}
	for i, fn := range fns {
		if fn == nil {
			panic(fmt.Sprintf("holdfast: Keys: key function %d is nil", i+1))
		}
	}
	return func(r *http.Request) (Key, error) {
		keys := make([]Key, len(fns))
		for i, fn := range fns {
			key, err := fn(r)
			if err != nil {
				return Key{}, err
			}
			keys[i] = key
		}
		return middleware.Join(keys...)
	}
}

// Constant returns the same key for all requests: only one of them runs at a time. Joined with others it
// keeps guards apart whose keys would meet. Panics if value is empty or has more than 255 bytes.
func Constant(value string) KeyFunc {
	key, err := NewKey("constant", value)
	if err != nil {
		panic(err)
	}
	return func(*http.Request) (Key, error) { return key, nil }
}

// ByHeader tells requests apart by a header field, which has to be there once. Clients choose it freely, so
// join it with who they are: [ByContext].
func ByHeader(name string) KeyFunc {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) (Key, error) { return single("header:"+name, r.Header[name]) }
}

// ByCookie tells requests apart by the value of a cookie, which has to be there once.
func ByCookie(name string) KeyFunc {
	return func(r *http.Request) (Key, error) {
		var values []string
		for _, c := range r.CookiesNamed(name) {
			values = append(values, c.Value)
		}
		return single("cookie:"+name, values)
	}
}

// ByQuery tells requests apart by a parameter of the query in the URL, which has to be there once.
func ByQuery(name string) KeyFunc {
	return func(r *http.Request) (Key, error) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			// The error of url repeats what the client sent.
			return Key{}, fmt.Errorf("%w: malformed query", ErrKeyInvalid)
		}
		return single("query:"+name, query[name])
	}
}

// single refuses what is there twice: the guard and the handler might not mean the same one.
func single(name string, values []string) (Key, error) {
	switch len(values) {
	case 0:
		return Key{}, fmt.Errorf("%w: no %s", ErrKeyRequired, name)
	case 1:
		return NewKey(name, values[0])
	default:
		return Key{}, fmt.Errorf("%w: %s is there %d times", ErrKeyInvalid, name, len(values))
	}
}

// ByPathValue tells requests apart by what a wildcard of the route has matched: "id" for "/cart/{id}". Whoever
// may see a path may lock it, so join it with the user or check the ownership around the guard. Fails with
// [ErrNoRoute] if the route is not known or has no such wildcard.
func ByPathValue(name string) KeyFunc {
	return func(r *http.Request) (Key, error) {
		value := r.PathValue(name)
		wildcard := strings.Contains(r.Pattern, "{"+name+"}") || strings.Contains(r.Pattern, "{"+name+"...}")
		if value == "" && !wildcard {
			return Key{}, fmt.Errorf("%w (path value %q, pattern %q)", ErrNoRoute, name, r.Pattern)
		}
		return NewKey("path:"+name, value)
	}
}

// ByRoute tells requests apart by method and route: the pattern of [http.ServeMux], not the path, so one lock
// covers a whole route unless more is joined to it. Fails with [ErrNoRoute] if no pattern has matched yet.
func ByRoute() KeyFunc {
	return func(r *http.Request) (Key, error) {
		if r.Pattern == "" {
			return Key{}, ErrNoRoute
		}
		method, err := NewKey("method", r.Method)
		if err != nil {
			return Key{}, err
		}
		route, err := NewKey("route", r.Pattern)
		if err != nil {
			return Key{}, err
		}
		return middleware.Join(method, route)
	}
}

// ByContext tells requests apart by what the context of the request holds at ctxKey: the user, put there by
// authentication. It may be a string, an integer, or have a method String. If it is absent or its type's zero
// value, nobody is logged in, and the error is [ErrScopeRequired].
//
// The name of the lock is made of the value alone, not of ctxKey, whose identity may change from build to
// build: join a [Constant] where two kinds of principal could meet in one lock.
func ByContext(ctxKey any) KeyFunc {
	if ctxKey == nil {
		panic("holdfast: ByContext: the context key is nil")
	}
	return func(r *http.Request) (Key, error) {
		key, err := middleware.PrincipalKey(r.Context().Value(ctxKey))
		if err != nil {
			return Key{}, fmt.Errorf("%w (in the context at %T)", err, ctxKey)
		}
		return key, nil
	}
}
