package httplock

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/middleware"
)

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
			return Key{}, middleware.KeyError(ErrKeyInvalid, "the query is malformed")
		}
		return single("query:"+name, query[name])
	}
}

// single refuses what is there twice: the guard and the handler might not mean the same one.
func single(name string, values []string) (Key, error) {
	switch len(values) {
	case 0:
		return Key{}, middleware.Missing(name)
	case 1:
		return NewKey(name, values[0])
	default:
		return Key{}, middleware.Repeated(name, len(values))
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
		return PathKey(name, value)
	}
}

// PathKey returns the key that [ByPathValue] makes of that value, for [Join].
func PathKey(name, value string) (Key, error) { return NewKey("path:"+name, value) }

// ByRoute tells requests apart by method and route: the pattern of [http.ServeMux], not the path, so one lock
// covers a whole route unless more is joined to it. Fails with [ErrNoRoute] if no pattern has matched yet.
func ByRoute() KeyFunc {
	return func(r *http.Request) (Key, error) { return RouteKey(r.Method, r.Pattern) }
}

// RouteKey returns the key that [ByRoute] makes of requests of that method to that pattern, for [Join]. The
// pattern is the one that the handler was registered with: "POST /cart/{id}/checkout" has the method in it, and
// is not the same as "/cart/{id}/checkout". The error is [ErrNoRoute] if it is empty.
func RouteKey(method, pattern string) (Key, error) {
	if pattern == "" {
		return Key{}, ErrNoRoute
	}
	name, err := NewKey("method", method)
	if err != nil {
		return Key{}, err
	}
	route, err := NewKey("route", pattern)
	if err != nil {
		return Key{}, err
	}
	return Join(name, route)
}
