package ginlock

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// ByKey tells requests apart by what the *gin.Context holds under name: the user, put there with c.Set by
// authentication. It may be a string, an integer, or have a method String. If it is absent or its type's zero
// value, nobody is logged in, and the error is [ErrScopeRequired].
//
// The name of the lock is made of the value alone, so a net/http service with the same user in
// [httplock.ByContext] excludes this one. Join a [Constant] where two kinds of principal could meet in one lock.
func ByKey(name string) KeyFunc {
	return func(c *gin.Context) (Key, error) {
		value, _ := c.Get(name)
		key, err := middleware.PrincipalKey(value)
		if err != nil {
			return Key{}, fmt.Errorf("%w (at %q in the gin.Context)", err, name)
		}
		return key, nil
	}
}

// PrincipalKey returns the key that [ByKey] makes of that value in the *gin.Context, for [Join]: the user whose
// request it was. See [middleware.PrincipalKey].
func PrincipalKey(value any) (Key, error) { return middleware.PrincipalKey(value) }

// ByParam tells requests apart by a parameter of the path: "id" for "/cart/:id" and "file" for "/files/*file".
// Whoever may see a path may lock it, so join it with the user or check the ownership around the guard. Fails
// with [ErrNoRoute] if the route has no such parameter.
func ByParam(name string) KeyFunc {
	return func(c *gin.Context) (Key, error) {
		value, ok := c.Params.Get(name)
		if !ok {
			return Key{}, fmt.Errorf("%w (parameter %q, route %q)", ErrNoRoute, name, c.FullPath())
		}
		if strings.HasSuffix(c.FullPath(), "/*"+name) {
			// The slash belongs to the route for net/http. The same file has the same lock there.
			value = strings.TrimPrefix(value, "/")
		}
		return PathKey(name, value)
	}
}

// PathKey returns the key that [ByParam] makes of that value, for [Join]. That of a catch-all parameter has no slash
// in front.
func PathKey(name, value string) (Key, error) { return httplock.PathKey(name, value) }

// ByRoute tells requests apart by method and route: c.FullPath, not the path, so one lock covers a whole route
// unless more is joined to it. It is known in middlewares of the whole engine, too. Fails with [ErrNoRoute]
// where no route has matched.
func ByRoute() KeyFunc {
	return func(c *gin.Context) (Key, error) { return RouteKey(c.Request.Method, c.FullPath()) }
}

// RouteKey returns the key that [ByRoute] makes of requests of that method to that route, for [Join]. The path is
// the one that the handler was registered with, groups and all: "/cart/:id/checkout". The error is [ErrNoRoute] if
// it is empty.
func RouteKey(method, fullPath string) (Key, error) { return httplock.RouteKey(method, fullPath) }

// ByClientIP tells requests apart by the address of the client as c.ClientIP knows it: an IPv4 address or the
// /64 network of an IPv6 address. Many clients may share one, so prefer who is logged in: [ByKey].
//
// Call SetTrustedProxies on the engine, with nil if there is no proxy in front of it. By default gin trusts
// everybody: a client that sends an X-Forwarded-For header of its own gets whatever address it likes, and with
// it the lock of somebody else, or one that nobody else asks for.
func ByClientIP() KeyFunc {
	return func(c *gin.Context) (Key, error) {
		// What is no address, and may be text of the client's, becomes the zero Addr, which is no client.
		addr, _ := netip.ParseAddr(c.ClientIP())
		return middleware.ClientKey(addr)
	}
}
