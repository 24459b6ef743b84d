package httplock

import (
	"net/http"
	"net/url"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// ByHeader identifies requests by a header field, which must occur exactly once. Clients choose it freely, so join it
// with the user: [ByContext].
func ByHeader(name string) KeyFunc {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.New("header:" + name)
		}
		return single("header:"+name, r.Header[name])
	}
}

// ByCookie identifies requests by the value of a cookie, which must occur exactly once.
func ByCookie(name string) KeyFunc {
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.New("cookie:" + name)
		}
		var values []string
		for _, c := range r.CookiesNamed(name) {
			values = append(values, c.Value)
		}
		return single("cookie:"+name, values)
	}
}

// ByQuery identifies requests by a parameter of the query in the URL, which must occur exactly once.
func ByQuery(name string) KeyFunc {
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.New("query:" + name)
		}
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			// The error of url repeats what the client sent.
			return Key{}, httpguard.KeyError(ErrKeyInvalid, "the query is malformed")
		}
		return single("query:"+name, query[name])
	}
}

// single refuses what is there twice: the guard and the handler might not mean the same one.
func single(name string, values []string) (Key, error) {
	switch len(values) {
	case 0:
		return Key{}, httpguard.Missing(name)
	case 1:
		return NewKey(name, values[0])
	default:
		return Key{}, httpguard.Repeated(name, len(values))
	}
}

// ByPathValue identifies requests by the resource that a wildcard of the route names: "id" of "/cart/{id}/checkout".
// The pattern up to the wildcard counts, so the same id in "/invoice/{id}" makes another key. The part after it does
// not count, nor does the method: a checkout of a cart and "DELETE /cart/{id}" have one key. [Exclusive] needs that.
// [Once] records an operation, so join [ByRoute]:
//
//	import httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//
//	httplock.Once(locks, httplock.Keys(httplock.ByRoute(), user, httplock.ByPathValue("id")))
//
// Clients choose the value, so join the user too, or check the ownership around the guard. For one key on routes of
// different shapes, write a [KeyFunc] that calls NewKey with [http.Request.PathValue]. ByPathValue fails with
// [ErrNoRoute] if the route is not known or has no such wildcard, and with [ErrKeyInvalid] if the path has a segment
// "..". Escapes in a value do not count: "%37" is 7, also with a router that hands it on as it was sent. Other spellings
// count: a handler that parses 7 and 07 as one number has two keys for it, unless a [KeyFunc] parses them too.
func ByPathValue(name string) KeyFunc {
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.Path(name)
		}
		return routeOf(r).PathKey(r, name, r.PathValue(name))
	}
}

// PathKey returns the key that [ByPathValue] makes of that value on a route with that pattern, for [Join]:
// PathKey("/cart/{id}/checkout", "id", "7"). The error is [ErrNoRoute] if the pattern has no such wildcard.
func PathKey(pattern, name, value string) (Key, error) {
	return httpguard.PathKey(pattern, name, value)
}

// ByRoute identifies requests by method and route, not by path: one key covers a whole route, whatever its wildcards
// match, unless you join more to it. The route is the pattern of [http.ServeMux], or of a router that sets Pattern of
// the request as chi does:
//
//   - The method counts as it is in the request. "POST /orders" and "/orders" are one route for POST. A handler that
//     does the same for all methods lets clients choose the key by the method: name the method in the pattern.
//   - A host in the pattern counts. Any other host does not, see [ByHost].
//   - What [http.StripPrefix] or an outer router has removed counts as it is in the path. So the same mux under two
//     prefixes has two routes. Join a [Constant] instead if they are one operation.
//   - A pattern that ends in "/" or "{rest...}" does not say where a request goes, for instance to another mux. The
//     path of the request counts in its place. A handler that treats all of these paths alike lets clients choose the
//     key that way: use a Constant, or a pattern that ends in "/{$}".
//
// ByRoute fails with [ErrNoRoute] if no pattern has matched yet, and if the pattern does not fit the path. It fails with
// [ErrKeyInvalid] if the path has a segment "..": whether the router has resolved it is not known.
func ByRoute() KeyFunc {
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.Route()
		}
		return routeOf(r).Key(r)
	}
}

// RouteKey returns the key that [ByRoute] makes of requests of that method to that pattern, for [Join]. The pattern is
// the one that the handler was registered with, "POST /cart/{id}/checkout" or without the method in it, behind what
// [http.StripPrefix] or an outer router has removed: "/customers/orders". For a pattern that ends in "/" or
// "{rest...}", pass the path of the request instead. The error is [ErrNoRoute] if there is no path.
func RouteKey(method, pattern string) (Key, error) { return httpguard.RouteKey(method, pattern) }

func routeOf(r *http.Request) httpguard.Route { return httpguard.RouteOf(r) }

// ByHost identifies requests by their host, without case, default port and the dot at the end. It distinguishes the
// sites and tenants of one service on one Redis: join it with the user. Clients choose the host, even in HTTP/2 and by
// an absolute target. So it is no principal, and a client that may send any host may choose among keys. Let the proxy
// in front, or a pattern with a host, pass only hosts that exist.
//
// The error is [ErrKeyRequired] if a request has no host.
func ByHost() KeyFunc {
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.Key(HostKey)
		}
		return HostKey(r.Host)
	}
}

// HostKey returns the key that [ByHost] makes of that host, for [Join].
func HostKey(host string) (Key, error) { return httpguard.HostKey(host) }
