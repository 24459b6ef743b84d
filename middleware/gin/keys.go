package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// KeyFunc makes the key of a request. Write your own with [NewKey]:
//
//	import ginlock "github.com/holdfast-go/holdfast/middleware/gin"
//
//	func(c *gin.Context) (ginlock.Key, error) {
//		return ginlock.NewKey("tenant", tenantOf(c))
//	}
//
// If the error is [ErrKeyRequired], [ErrKeyInvalid] or [ErrScopeRequired], the guard refuses the request with 400, 400
// or 401. It refuses any other error, and [ErrNoRoute], with 500.
//
// c.Request is a copy of the one that came in, and its body is not read yet. A KeyFunc that reads it takes it from the
// handler, see [ByForm] and [ByJSON].
type KeyFunc func(c *gin.Context) (Key, error)

// Key identifies what must not run at the same time.
type Key = middleware.Key

// Errors of key functions, for errors.Is.
var (
	ErrKeyRequired   = middleware.ErrKeyRequired
	ErrKeyInvalid    = middleware.ErrKeyInvalid
	ErrScopeRequired = middleware.ErrScopeRequired
	ErrNoRoute       = middleware.ErrNoRoute
)

// KeyError returns an error of a key function whose text goes to the client, see [middleware.KeyError].
func KeyError(kind error, format string, args ...any) error {
	return middleware.KeyError(kind, format, args...)
}

// NewKey returns a key of one named value. A client whose request lacks the value gets the name in the answer. The
// error is [ErrKeyRequired] if the value is empty, and [ErrKeyInvalid] if it has more than 255 bytes.
func NewKey(name, value string) (Key, error) { return middleware.NewKey(name, value) }

// Keys joins keys: all of them together identify a request. It fails with the first error of fns. Keys panics if there
// are no functions or one is nil.
func Keys(fns ...KeyFunc) KeyFunc { return middleware.Keys(fns...) }

// FirstOf returns the key of the first of fns that finds one: the user's if a user is logged in, else that of a
// cookie. See [httplock.FirstOf] for what that lets clients choose. FirstOf panics if there are no functions or one is
// nil.
func FirstOf(fns ...KeyFunc) KeyFunc { return middleware.FirstOf(fns...) }

// Join returns the key of all keys together, as [Keys] makes it. It is for business code without a request, to
// identify what a request has left. Join [RouteKey], [PrincipalKey], [PathKey] and [NewKey] in the order in which the
// guard has them. The error is [ErrKeyRequired] if there are none, or one is the zero Key.
func Join(keys ...Key) (Key, error) { return middleware.Join(keys...) }

// From makes a key function from one for net/http, which gets c.Request. The key is the same, so that services of both
// kinds exclude each other. Functions that need the route need a http.ServeMux and fail with [ErrNoRoute] here: use
// [ByRoute] and [ByParam]. From panics if key is nil.
func From(key httplock.KeyFunc) KeyFunc {
	if key == nil {
		panic("holdfast: From: the key function is nil")
	}
	return func(c *gin.Context) (Key, error) { return key(c.Request) }
}

// Constant returns the same key for all requests: only one of them runs at a time. Joined with other keys, it
// distinguishes guards whose keys would be equal. Constant panics if value is empty or has more than 255 bytes.
func Constant(value string) KeyFunc { return From(httplock.Constant(value)) }

// ByHeader identifies requests by a header field, which must occur exactly once. Clients choose it freely, so join it
// with the user: [ByKey].
func ByHeader(name string) KeyFunc { return From(httplock.ByHeader(name)) }

// ByCookie identifies requests by the value of a cookie, which must occur exactly once.
func ByCookie(name string) KeyFunc { return From(httplock.ByCookie(name)) }

// ByQuery identifies requests by a parameter of the query in the URL, which must occur exactly once.
func ByQuery(name string) KeyFunc { return From(httplock.ByQuery(name)) }

// ByHost identifies requests by their host, see [httplock.ByHost]. Clients choose the host. So it distinguishes the
// sites and tenants of one service, and is no principal.
func ByHost() KeyFunc { return From(httplock.ByHost()) }

// HostKey returns the key that [ByHost] makes of that host, for [Join].
func HostKey(host string) (Key, error) { return httplock.HostKey(host) }

// ByContext identifies requests by the value of the context c.Request.Context() at ctxKey. It is for authentication
// that was written for net/http; otherwise it is [ByKey]. ByContext panics if ctxKey is nil.
func ByContext(ctxKey any) KeyFunc { return From(httplock.ByContext(ctxKey)) }

// ByForm identifies requests by a field of the form in the body, see [httplock.ByForm].
func ByForm(name string) KeyFunc { return From(httplock.ByForm(name)) }

// ByJSON identifies requests by a value in the JSON document in the body, see [httplock.ByJSON]. ByJSON panics if
// pointer is invalid.
func ByJSON(pointer string) KeyFunc { return From(httplock.ByJSON(pointer)) }

// Unscoped returns the same key for all requests. Use it as a scope that all clients share, see [httplock.Unscoped].
func Unscoped() KeyFunc { return From(httplock.Unscoped()) }
