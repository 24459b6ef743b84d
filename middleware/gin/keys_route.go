package ginlock

import (
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/internal/ginroute"
	"github.com/holdfast-go/holdfast/middleware"
)

// ByParam identifies requests by the resource that a parameter of the path names: "id" of "/cart/:id/checkout", "file"
// of "/files/*file". The route up to the parameter counts, so the same id in "/invoice/:id" makes another key. The
// part after it does not count, nor does the method: a checkout of a cart and DELETE "/cart/:id" have one key.
// [Exclusive] needs that. [Once] records an operation, so join [ByRoute]:
//
//	import ginlock "github.com/holdfast-go/holdfast/middleware/gin"
//
//	ginlock.Once(locks, ginlock.Keys(ginlock.ByRoute(), user, ginlock.ByParam("id")))
//
// Clients choose the value, so join the user too, or check the ownership around the guard. For one key on routes of
// different shapes, write a [KeyFunc] that calls NewKey with c.Param. ByParam fails with [ErrNoRoute] if the route has no
// such parameter.
//
// It fails with [ErrKeyInvalid] if no route has matched, and if the path has a segment "..". Escapes in a value do not
// count: "%37" is 7, also if gin is told to hand it on as it was sent. Other spellings count: a handler that parses 7 and
// 07 as one number has two keys for it, unless a [KeyFunc] parses them too.
func ByParam(name string) KeyFunc {
	return func(c *gin.Context) (Key, error) {
		if c.FullPath() == "" {
			return Key{}, errUnknownPath
		}
		value, _ := c.Params.Get(name)
		if strings.HasSuffix(c.FullPath(), "/*"+name) {
			// The slash belongs to the route for net/http. The same file has the same lock there.
			value = strings.TrimPrefix(value, "/")
		}
		return routeOf(c).PathKey(c.Request, name, value)
	}
}

// PathKey returns the key that [ByParam] makes of that value on that route, for [Join]:
// PathKey("/cart/:id/checkout", "id", "7"). The value of a catch-all parameter has no slash in front. The error is
// [ErrNoRoute] if the route has no such parameter.
func PathKey(fullPath, name, value string) (Key, error) {
	return middleware.PathKey(ginroute.Pattern(fullPath), name, value)
}

// ByRoute identifies requests by method and route, not by path: one key covers a whole route, whatever its parameters
// match, unless you join more to it. The route is c.FullPath, groups and all, and is known in middlewares of the whole
// engine too. The key is that of [httplock.ByRoute] for the same route: "/cart/:id" here is "/cart/{id}" there.
//
//   - What http.StripPrefix has removed around the engine counts as it is in the path. So the same engine under two
//     prefixes has two routes. Join a [Constant] instead if they are one operation.
//
//   - A route that ends in "/*rest" does not say where a request goes, for instance to another router. The path of the
//     request counts in its place. A handler that treats all of these paths alike lets clients choose the key that
//     way: use a Constant.
//
//   - A route for any method has a key for each: a handler that does the same for all of them lets clients choose the
//     key by the method.
//
// ByRoute fails with [ErrKeyInvalid] if no route has matched: a guard of the whole engine answers 400 to unknown paths. It
// fails so too if the path has a segment "..": whether it was resolved is not known.
func ByRoute() KeyFunc {
	return func(c *gin.Context) (Key, error) {
		if c.FullPath() == "" {
			return Key{}, errUnknownPath
		}
		return routeOf(c).Key(c.Request)
	}
}

// errUnknownPath is for what gin's NoRoute and NoMethod handle. A client causes it, so the guard must not log it as a
// mistake of the service.
var errUnknownPath = middleware.KeyError(ErrKeyInvalid, "no route has this path and method")

// RouteKey returns the key that [ByRoute] makes of requests of that method to that route, for [Join]. The path is the
// one that the handler was registered with, groups and all: "/cart/:id/checkout". It is behind what http.StripPrefix
// has removed around the engine. For a route that ends in "/*rest", pass the path of the request instead. The error is
// [ErrNoRoute] if it is empty.
func RouteKey(method, fullPath string) (Key, error) {
	return middleware.RouteKey(method, ginroute.Pattern(fullPath))
}

// routeOf returns what gin knows of the route. gin matches decoded paths, unless UseRawPath is set.
func routeOf(c *gin.Context) middleware.Route {
	return middleware.Route{Pattern: ginroute.Pattern(c.FullPath()), Decoded: true}
}
