package httpguard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// fit is how a pattern fits the path of a request.
type fit struct {
	prefix []string // what was taken away before the router has matched the pattern
	url    *url.URL // whose path begins with the prefix
	// escaped is true if the segments of the pattern are those of the path as it was sent. It is false if the router has cut the
	// decoded path otherwise, at an escaped slash.
	escaped bool
}

// fit returns how the pattern of a route fits the path of r: the path that the client has sent or, if it fits none of that, the
// path that a handler around the router has put in its place. The error is [ErrNoRoute] if the pattern fits neither.
//
// A path with an escaped slash may fit in two ways, if its router can match decoded paths and escaped ones. Then the error is
// [ErrKeyInvalid]: which part of the path is the prefix is not known, and a client could choose among several keys.
func (rt Route) fit(r *http.Request, p pattern) (fit, error) {
	target := targetOf(r)
	fits := rt.fits(target, func(cut func(*url.URL) []string) ([]string, bool) { return p.under(cut(target), cut(r.URL)) })
	if len(fits) == 0 { // a handler around the router has put another path in place
		fits = rt.fits(r.URL, func(cut func(*url.URL) []string) ([]string, bool) { return nil, p.begins(cut(r.URL)) })
	}
	switch {
	case len(fits) == 0:
		return fit{}, fmt.Errorf("%w (pattern %q does not fit the path of the request)", ErrNoRoute, rt.Pattern)
	case len(fits) > 1 && !slices.Equal(fits[0].prefix, fits[1].prefix):
		return fit{}, KeyError(ErrKeyInvalid, "the path has an escaped slash, so its route is not certain")
	}
	return fits[0], nil
}

// fits returns the fits of a path by each way in which the router may have cut it. The router of decoded paths can be told to match
// escaped ones.
func (rt Route) fits(u *url.URL, by func(cut func(*url.URL) []string) (prefix []string, ok bool)) (found []fit) {
	if rt.Decoded {
		if prefix, ok := by(cutDecoded); ok {
			found = append(found, fit{prefix, u, len(cutDecoded(u)) == len(cutEscaped(u))})
		}
	}
	if prefix, ok := by(cutEscaped); ok {
		found = append(found, fit{prefix, u, true})
	}
	return found
}

// placesOf returns the text in the escaped path that a segment of the pattern has matched, with the index of that segment in the
// pattern: all of the path if the segment takes the rest, and nothing if the router has cut the path otherwise.
func (f fit) placesOf(segment string, index int) []string {
	escaped := cutPath(f.url.EscapedPath())
	index += len(f.prefix)
	switch {
	case strings.HasSuffix(segment, "...}"):
		return []string{f.url.EscapedPath()}
	case !f.escaped:
		return nil
	case index < len(escaped):
		return escaped[index : index+1]
	}
	return nil
}
