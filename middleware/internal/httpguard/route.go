package httpguard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Route is the router's view of a request, by an adapter.
type Route struct {
	// Pattern is the matched pattern, in the form of [http.ServeMux]: "POST example.com/cart/{id}". The method in it
	// does not count. It is empty if no pattern is known.
	Pattern string
	// Decoded is true if the router matches the decoded path, in which an escaped slash ends a segment. Defaults to
	// false: the path as it was sent.
	Decoded bool
}

type decodedPaths struct{}

// WithDecodedPaths returns a context for the request of a key function, for adapters whose router matches decoded paths: see
// [RouteOf].
func WithDecodedPaths(ctx context.Context) context.Context {
	return context.WithValue(ctx, decodedPaths{}, true)
}

// RouteOf returns the route of a request by its Pattern, and by its context if that is one of [WithDecodedPaths].
func RouteOf(r *http.Request) Route {
	decoded, _ := r.Context().Value(decodedPaths{}).(bool)
	return Route{Pattern: r.Pattern, Decoded: decoded}
}

// RouteKey returns the key of all requests of that method to that pattern, as [Route.Key] makes it. The pattern is in
// the form of [http.ServeMux], with any names of wildcards, behind the prefix that [http.StripPrefix] or an outer
// router has removed. A method in it does not count. Of a pattern that ends in a slash or in "{rest...}" each path is
// a route of its own: pass that path. The error is [ErrNoRoute] if there is no path in the pattern, or if it ends in
// "{rest...}".
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

// PathKey returns the key of the resource that a wildcard of a pattern names, as [Route.PathKey] makes it: "7" for
// "id" of "/cart/{id}/checkout". The part after the wildcard does not count, nor does the method. The error is
// [ErrNoRoute] if the pattern has no such wildcard, and that of [NewKey].
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

// wildcardError is the error of a key function that names a wildcard which the route does not have. Its text has what the program
// says, and nothing of a request.
type wildcardError struct{ text string }

func (e *wildcardError) Error() string { return e.text }

// Is makes it an [ErrNoRoute].
func (e *wildcardError) Is(target error) bool { return target == ErrNoRoute }

// lacks returns the error for a wildcard that a pattern does not have.
func (p pattern) lacks(name, text string) error {
	has := "no wildcards"
	if names := p.wildcards(); len(names) > 0 {
		has = "only " + strings.Join(names, ", ")
	}
	return &wildcardError{fmt.Sprintf("holdfast: the route %q has no wildcard %q: it has %s", text, name, has)}
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

// Key returns the key of the method and the route of r. All of the routed path identifies a route:
//
//   - A router sees the path without what [http.StripPrefix] or an outer router has removed. That prefix comes in
//     front of the pattern, as it is in the path of the request.
//   - A pattern that ends in a slash or in "{rest...}" does not say where the request goes. The path of the request
//     takes its place, so each path below it is a route of its own.
//
// The error is [ErrNoRoute] if the route is not known. It is also ErrNoRoute if the pattern fits neither the path of
// the request nor the path that a handler around the router has set. A path with a segment ".." is [ErrKeyInvalid]:
// whether it was resolved is not known. So is a path of more than 8 KiB.
func (rt Route) Key(r *http.Request) (Key, error) {
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

// PathKey returns the key of the resource that a wildcard of the route names. The pattern up to the wildcard is part
// of the key. So "/cart/{id}" and "/invoice/{id}" make two keys of one value, and "/cart/{id}/checkout" and
// "/cart/{id}/cancel" make one. A value that the router has left escaped is unescaped first: "%37" is 7. The error is
// [ErrNoRoute] if the route is not known or has no such wildcard, that of [NewKey], and [ErrKeyInvalid] for a path with a
// segment ".." or of more than 8 KiB.
func (rt Route) PathKey(r *http.Request, name, value string) (Key, error) {
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
func (rt Route) full(r *http.Request) (path []string, slash bool) {
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
func (rt Route) cut(u *url.URL) []string {
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
