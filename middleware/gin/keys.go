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
// An error that is [ErrKeyRequired], [ErrKeyInvalid] or [ErrScopeRequired] refuses the request with 400, 400 or
// 401; any other one, and [ErrNoRoute], with 500.
//
// c.Request is a copy of the one that came in, and its body is not read yet: whoever reads it takes it from the
// handler, see [ByForm] and [ByJSON].
type KeyFunc func(c *gin.Context) (Key, error)

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

// Keys joins keys: requests are told apart by all of them together. It fails with the first error of fns.
// Panics if there are no functions or one is nil.
func Keys(fns ...KeyFunc) KeyFunc { return middleware.Keys(fns...) }

// FirstOf returns the key of the first of fns that finds one: the user's if one is logged in, else that of a
// cookie. See [httplock.FirstOf] for what that lets clients choose. Panics if there are no functions or one is nil.
func FirstOf(fns ...KeyFunc) KeyFunc { return middleware.FirstOf(fns...) }

// Join returns the key of all keys together, as [Keys] makes it: for business code that has no request, to name
// what a request has left behind. Join [RouteKey], [PrincipalKey], [PathKey] and [NewKey] in the order in which
// the guard has them. The error is [ErrKeyRequired] if there are none, or one is the zero Key.
func Join(keys ...Key) (Key, error) { return middleware.Join(keys...) }

// From makes a key function of one for net/http, which sees c.Request. The key is the same, so that services
// of both kinds exclude each other. Those that ask for the route need a http.ServeMux and fail with
// [ErrNoRoute] here: use [ByRoute] and [ByParam]. Panics if key is nil.
func From(key httplock.KeyFunc) KeyFunc {
	if key == nil {
		panic("holdfast: From: the key function is nil")
	}
	return func(c *gin.Context) (Key, error) { return key(c.Request) }
}

// Constant returns the same key for all requests: only one of them runs at a time. Joined with others it
// keeps guards apart whose keys would meet. Panics if value is empty or has more than 255 bytes.
func Constant(value string) KeyFunc { return From(httplock.Constant(value)) }

// ByHeader tells requests apart by a header field, which has to be there once. Clients choose it freely, so
// join it with who they are: [ByKey].
func ByHeader(name string) KeyFunc { return From(httplock.ByHeader(name)) }

// ByCookie tells requests apart by the value of a cookie, which has to be there once.
func ByCookie(name string) KeyFunc { return From(httplock.ByCookie(name)) }

// ByQuery tells requests apart by a parameter of the query in the URL, which has to be there once.
func ByQuery(name string) KeyFunc { return From(httplock.ByQuery(name)) }

// ByHost tells requests apart by the host that they ask for, see [httplock.ByHost]. Clients choose it, so it keeps apart
// the sites and tenants of one service, and is no principal.
func ByHost() KeyFunc { return From(httplock.ByHost()) }

// HostKey returns the key that [ByHost] makes of that host, for [Join].
func HostKey(host string) (Key, error) { return httplock.HostKey(host) }

// ByContext tells requests apart by what the context of the request, c.Request.Context(), holds at ctxKey. It
// is for authentication that was written for net/http; other than that it is [ByKey]. Panics if ctxKey is nil.
func ByContext(ctxKey any) KeyFunc { return From(httplock.ByContext(ctxKey)) }

// ByForm tells requests apart by a field of the form in the body, see [httplock.ByForm].
func ByForm(name string) KeyFunc { return From(httplock.ByForm(name)) }

// ByJSON tells requests apart by a value in the JSON document in the body, see [httplock.ByJSON]. Panics if
// pointer is invalid.
func ByJSON(pointer string) KeyFunc { return From(httplock.ByJSON(pointer)) }

// Unscoped returns the same key for all requests, to say where a scope is asked for that all clients share one,
// see [httplock.Unscoped].
func Unscoped() KeyFunc { return From(httplock.Unscoped()) }
