package httplock

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// pattern is a route as a router has it registered, in one form for all routers. Method and spelling of escapes are
// left out.
type pattern struct {
	host string
	// segments are the pieces between slashes. Literal ones are escaped as in a URL, so only wildcards have braces:
	// "{id}", "{rest...}", "{id:[0-9]+}" of chi. Its "*" is "{*...}" here.
	segments []string
	// slash is true if the path ends in a slash.
	slash bool
	// subtree is true if the pattern matches all paths that begin like it: it ends in a slash or "{rest...}".
	subtree bool
}

// parsePattern reads a pattern of [http.ServeMux] or chi. It returns false if there is no path in it.
func parsePattern(text string) (pattern, bool) {
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		text = strings.TrimLeft(text[i:], " \t") // behind the method
	}
	i := strings.IndexByte(text, '/')
	if i < 0 {
		return pattern{}, false
	}
	p := pattern{host: strings.ToLower(text[:i])}
	for _, piece := range cutPath(text[i:]) {
		switch {
		case piece == "{$}":
			p.slash = true
		case piece == "*":
			p.segments = append(p.segments, "{*...}")
		case wildcard(piece):
			p.segments = append(p.segments, piece)
		default:
			p.segments = append(p.segments, canonical(piece))
		}
	}
	if strings.HasSuffix(text, "/") {
		p.slash, p.subtree = true, true
	}
	p.subtree = p.subtree || len(p.head()) < len(p.segments)
	return p, true
}

// cutPath returns the pieces between the slashes of a path or pattern, without empty ones and single dots. A slash in
// braces is part of a regular expression.
func cutPath(path string) []string {
	var pieces []string
	begin, depth := 0, 0
	cut := func(end int) {
		if piece := path[begin:end]; piece != "" && piece != "." {
			pieces = append(pieces, piece)
		}
		begin = end + 1
	}
	for i := range len(path) {
		switch {
		case path[i] == '{':
			depth++
		case path[i] == '}':
			depth--
		case path[i] == '/' && depth <= 0:
			cut(i)
		}
	}
	cut(len(path))
	return pieces
}

// canonical spells a literal piece of a path or pattern in the one way in which it is compared.
func canonical(piece string) string {
	if text, err := url.PathUnescape(piece); err == nil {
		piece = text
	}
	return url.PathEscape(piece)
}

// wildcard reports whether a segment of a pattern matches more than its own text.
func wildcard(segment string) bool { return strings.Contains(segment, "{") }

// head returns the segments in front of the wildcard that stands for the rest of the path.
func (p pattern) head() []string {
	last := len(p.segments) - 1
	if last >= 0 && strings.HasSuffix(p.segments[last], "...}") {
		return p.segments[:last]
	}
	return p.segments
}

// begins reports whether the path begins like the pattern, or for a pattern that is no subtree, whether it is matched.
func (p pattern) begins(path []string) bool {
	head := p.head()
	if len(path) < len(head) || !p.subtree && len(path) > len(head) {
		return false
	}
	for i, segment := range head {
		if !wildcard(segment) && segment != path[i] {
			return false
		}
	}
	return true
}

// under returns what of the path was taken away in front of the router that has matched p, and false if p does not fit.
// What the guard has seen of the path may be less than the router has, if something was taken away between them.
func (p pattern) under(path, seen []string) (prefix []string, ok bool) {
	before := len(path) - len(p.segments)
	switch {
	case !p.subtree && before >= 0 && p.begins(path[before:]):
		return path[:before], true
	case !p.subtree:
		return nil, false
	case endsIn(path, seen) && p.begins(seen):
		return path[:len(path)-len(seen)], true
	}
	return nil, p.begins(path)
}

func endsIn(path, end []string) bool {
	return len(path) >= len(end) && slices.Equal(path[len(path)-len(end):], end)
}

// upTo returns the pattern as far as the named wildcard, and false if there is none.
func (p pattern) upTo(name string) ([]string, bool) {
	for i, segment := range p.segments {
		for _, end := range []string{"}", ":", "...}"} {
			if before, _, found := strings.Cut(segment, "{"+name+end); found {
				return append(slices.Clone(p.segments[:i]), before+"{}"), true
			}
		}
	}
	return nil, false
}

// routeText returns the route of that host with those segments.
func routeText(host string, slash bool, segments ...[]string) string {
	all := slices.Concat(segments...)
	for i, segment := range all {
		all[i] = unnamed(segment)
	}
	path := host + "/" + strings.Join(all, "/")
	if slash && len(all) > 0 {
		path += "/"
	}
	return path
}

// unnamed returns a segment without the names of its wildcards: another name makes no other route. What a wildcard of chi
// requires does.
func unnamed(segment string) string {
	var b strings.Builder
	depth, naming := 0, false
	for _, c := range []byte(segment) {
		switch {
		case c == '{':
			depth++
			naming = depth == 1
		case c == '}':
			depth--
			naming = false
		case c == ':' || c == '.':
			naming = false
		}
		if !naming || c == '{' {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// fit is how a pattern fits the path of a request.
type fit struct {
	prefix []string // what was taken away before the router has matched the pattern
	url    *url.URL // whose path begins with the prefix
	// escaped is true if the pattern has the segments of the path as it was sent. It is false if the router has cut the
	// decoded path otherwise, at an escaped slash.
	escaped bool
}

// fit returns how the pattern of a route fits the path of r: the path that the client has sent or, if it fits none of that, the
// path that a handler around the router has put in its place. The error is [ErrNoRoute] if the pattern fits neither.
//
// A path with an escaped slash may fit in two ways, if its router can match decoded paths and escaped ones. Then the error is
// [ErrKeyInvalid]: which part of the path is the prefix is not known, and a client could choose among several keys.
func (rt routing) fit(r *http.Request, p pattern) (fit, error) {
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

// fits returns the fits of a path by each way in which the router may have cut it. The router of decoded paths can be
// configured to match escaped ones.
func (rt routing) fits(u *url.URL, by func(cut func(*url.URL) []string) (prefix []string, ok bool)) (found []fit) {
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
