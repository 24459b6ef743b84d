package httpguard

import (
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
	// slash tells that the path ends in a slash.
	slash bool
	// subtree tells that the pattern matches all paths that begin like it: it ends in a slash or "{rest...}".
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
