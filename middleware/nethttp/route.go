package httplock

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/middleware/internal/request"
)

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
//     key that way: use a Constant, or a pattern that ends in "/{$}". One that goes by the value of the wildcard needs a
//     Constant and [ByPathValue] in place of ByRoute: "/files/a/b" and "/files/a%2Fb" are two routes with one value, and in
//     fiber so are "/files/a" and "/files/a/".
//
// ByRoute fails with [ErrNoRoute] if no pattern has matched yet, and if the pattern does not fit the path. It fails with
// [ErrKeyInvalid] if the path has a segment "..", because whether the router has resolved it is not known, or more than 8 KiB.
func ByRoute() KeyFunc {
	return orOfText((*keyParts).route, func(r *http.Request) (Key, error) {
		return routingOf(r).Key(r)
	})
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
// [ErrNoRoute] if the route is not known or has no such wildcard, and with [ErrKeyInvalid] for the paths of ByRoute. Escapes in a value do not count: "%37" is 7, also with a router that hands it on as it was sent. With chi
// and Echo, do not call [url.PathUnescape] in the handler, and make the key of the value that it uses, by a KeyFunc: they hand on
// some values unescaped and others as they were sent. Other spellings count: a handler that parses 7 and 07 as one number has two
// keys for it, unless a [KeyFunc] parses them too.
func ByPathValue(name string) KeyFunc {
	return orOfText(pathOfText(name), func(r *http.Request) (Key, error) {
		return routingOf(r).PathKey(r, name, r.PathValue(name))
	})
}

// routing is what the router has found of a request.
type routing struct {
	// Pattern is the matched pattern, in the form of [http.ServeMux]: "POST example.com/cart/{id}". The method in it
	// does not count. It is empty if no pattern is known.
	Pattern string
	// Decoded is true if the router matches the decoded path, in which an escaped slash ends a segment. Defaults to
	// false: the path as it was sent.
	Decoded bool
}

// routingOf returns the route of a request by its Pattern.
func routingOf(r *http.Request) routing {
	return routing{Pattern: r.Pattern, Decoded: request.DecodedPaths(r)}
}

// RouteKey returns the key that [ByRoute] makes of requests of that method to that pattern, for [Join]. The pattern is
// the one that the handler was registered with, "POST /cart/{id}/checkout" or without the method in it, behind what
// [http.StripPrefix] or an outer router has removed: "/customers/orders". For a pattern that ends in "/" or
// "{rest...}", pass the path of the request instead. The error is [ErrNoRoute] if there is no path.
func RouteKey(method, pattern string) (Key, error) {
	p, ok := parsePattern(pattern)
	if !ok {
		return Key{}, fmt.Errorf("%w (pattern %q)", ErrNoRoute, pattern)
	}
	if len(p.head()) < len(p.segments) {
		return Key{}, fmt.Errorf("%w (pattern %q has many paths: name one)", ErrNoRoute, pattern)
	}
	return routeKey(method, routeText(p.host, p.slash, p.segments))
}

func routeKey(method, route string) (Key, error) {
	name, err := NewKey("method", strings.ToUpper(method)) // no second key for a client that writes "post"
	if err != nil {
		return Key{}, err
	}
	// Not by NewKey: a path may be longer than what else a client chooses.
	return Join(name, Key{parts: []part{{"route", route}}})
}

// PathKey returns the key that [ByPathValue] makes of that value on a route with that pattern, for [Join]:
// PathKey("/cart/{id}/checkout", "id", "7"). The error is [ErrNoRoute] if the pattern has no such wildcard.
func PathKey(pattern, name, value string) (Key, error) {
	p, ok := parsePattern(pattern)
	segments, found := p.upTo(name)
	switch {
	case !ok:
		return Key{}, fmt.Errorf("%w (wildcard %q, pattern %q)", ErrNoRoute, name, pattern)
	case !found:
		return Key{}, p.lacks(name, pattern)
	}
	return pathKey(routeText(p.host, false, segments), value)
}

// routeError is the error of a key function that needs what the route does not have. Its text has what the program says, and
// nothing of a request.
type routeError struct{ text string }

func (e *routeError) Error() string { return e.text }

// LogValue implements [slog.LogValuer].
func (e *routeError) LogValue() slog.Value { return slog.StringValue(e.text) }

// Is makes it an [ErrNoRoute].
func (e *routeError) Is(target error) bool { return target == ErrNoRoute }

// lacks returns the error for a wildcard that a pattern does not have.
func (p pattern) lacks(name, text string) error {
	has := "no wildcards"
	if names := p.wildcards(); len(names) > 0 {
		has = "only " + strings.Join(names, ", ")
	}
	return &routeError{fmt.Sprintf("holdfast: the route %q has no wildcard %q: it has %s", text, name, has)}
}

// wildcards returns the names of the wildcards, quoted.
func (p pattern) wildcards() (names []string) {
	for _, segment := range p.segments {
		if wildcard(segment) {
			name, _, _ := strings.Cut(strings.Trim(segment, "{}"), ":")
			names = append(names, strconv.Quote(strings.TrimSuffix(name, "...")))
		}
	}
	return names
}

func pathKey(resource, value string) (Key, error) {
	key, err := NewKey("path", value)
	if err != nil {
		return Key{}, err
	}
	// In a value, since names are the same for all keys of a guard.
	return Join(Key{parts: []part{{"resource", resource}}}, key)
}

// Key returns the key of [ByRoute].
func (rt routing) Key(r *http.Request) (Key, error) {
	if err := checkPath(r); err != nil {
		return Key{}, err
	}
	p, ok := parsePattern(rt.Pattern)
	if !ok {
		return Key{}, fmt.Errorf("%w (pattern %q)", ErrNoRoute, rt.Pattern)
	}
	if p.subtree {
		full, slash := rt.full(r)
		return routeKey(r.Method, routeText(p.host, slash, full))
	}
	fit, err := rt.fit(r, p)
	if err != nil {
		return Key{}, err
	}
	return routeKey(r.Method, routeText(p.host, p.slash, fit.prefix, p.segments))
}

// PathKey returns the key of [ByPathValue] for the value that the router has found, which it may have left escaped.
func (rt routing) PathKey(r *http.Request, name, value string) (Key, error) {
	if err := checkPath(r); err != nil {
		return Key{}, err
	}
	p, ok := parsePattern(rt.Pattern)
	segments, found := p.upTo(name)
	switch {
	case ok && found:
		fit, err := rt.fit(r, p)
		if err != nil {
			return Key{}, err
		}
		last := len(segments) - 1
		value = unescaped(value, fit.placesOf(p.segments[last], last)...)
		return pathKey(routeText(p.host, false, fit.prefix, segments), value)
	case value == "" && ok:
		return Key{}, p.lacks(name, rt.Pattern)
	case value == "":
		return Key{}, fmt.Errorf("%w (wildcard %q, pattern %q)", ErrNoRoute, name, rt.Pattern)
	}
	// A router around the one whose pattern is known has found the value. Its own pattern is not known, so the
	// path up to the value takes its place.
	path, _ := rt.full(r)
	value = unescaped(value, cutPath(targetOf(r).EscapedPath())...)
	at := slices.Index(path, url.PathEscape(value))
	if at < 0 { // what is behind the value would count too, and one thing would have many keys
		return Key{}, fmt.Errorf("%w (the value of wildcard %q is no segment of the path)", ErrNoRoute, name)
	}
	return pathKey(routeText(p.host, false, path[:at], []string{"{}"}), value)
}

// full returns the path of r as it came in, or the one that a handler has put in its place, and whether it ends in a
// slash.
func (rt routing) full(r *http.Request) (path []string, slash bool) {
	whole := targetOf(r)
	if !endsIn(rt.cut(whole), rt.cut(r.URL)) {
		whole = r.URL
	}
	text := whole.EscapedPath()
	if rt.Decoded {
		text = whole.Path
	}
	return rt.cut(whole), strings.HasSuffix(text, "/")
}

// cut returns the segments of a path, as the router has probably cut it.
func (rt routing) cut(u *url.URL) []string {
	if rt.Decoded {
		return cutDecoded(u)
	}
	return cutEscaped(u)
}

func cutEscaped(u *url.URL) []string {
	path := cutPath(u.EscapedPath())
	for i, segment := range path {
		path[i] = canonical(segment)
	}
	return path
}

func cutDecoded(u *url.URL) []string {
	var path []string
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment != "" && segment != "." {
			path = append(path, url.PathEscape(segment))
		}
	}
	return path
}

// targetOf returns the URL of r as the client has sent it, before [http.StripPrefix] and the like. A request that did
// not come over a network may have none of its own.
func targetOf(r *http.Request) *url.URL {
	if r.RequestURI == "" || r.Method == http.MethodConnect { // whose target is a host
		return r.URL
	}
	target, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return r.URL
	}
	return target
}

// climbs returns true if a segment of the path is "..", however it is spelled.
//
// Such a request is refused because net/http and most proxies resolve these segments, other routers take them as text, and a
// handler in front of the router may do either. So the guard cannot know which route the router has found. In front of a
// router that resolves them, a client could write each path in as many ways as it likes, and have as many keys.
func climbs(u *url.URL) bool {
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == ".." {
			return true
		}
	}
	return false
}

// longestPath bounds the path of which a key is made, in bytes as it was sent. Servers should take a request line of 8,000
// (RFC 9112, section 3); net/http takes a megabyte. The segments of such a path take a multiple of it.
const longestPath = 8 << 10

// checkPath returns the error for a request whose path is too long for a key, or has no certain route.
func checkPath(r *http.Request) error {
	sent, _, _ := strings.Cut(r.RequestURI, "?")
	if size := max(len(sent), len(r.URL.Path), len(r.URL.RawPath)); size > longestPath {
		return KeyError(ErrKeyInvalid, "the path has %d bytes, at most %d are allowed", size, longestPath)
	}
	if climbs(targetOf(r)) {
		return KeyError(ErrKeyInvalid, `the path has a segment ".."`)
	}
	return nil
}

// unescaped returns the value of a wildcard as a text that does not depend on how the client has spelled it.
//
// chi takes values from the escaped path if the client has escaped more than it must, and gin does if it is configured to.
// Then "7" and "%37" are two values of one resource, for a handler that unescapes them. A router that unescapes by itself
// has left no escape that also stands in that place of the path: there a percent sign is "%25".
func unescaped(value string, places ...string) string {
	if !strings.Contains(value, "%") {
		return value
	}
	for _, place := range places {
		if text, err := url.PathUnescape(value); err == nil && strings.Contains(place, value) {
			return text
		}
	}
	return value
}
