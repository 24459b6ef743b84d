package hosted

import (
	"net/url"
	"strings"
)

// FiberPattern returns a route of fiber in the form of [http.ServeMux]: "/cart/{id}" for "/cart/:id<int>", "/files/{rest...}" for
// "/files/*". The names of the parameters are those that fiber has found in it. A segment that is optional and empty is left out. A
// slash at the end counts if routing is strict.
func FiberPattern(route string, params []string, strict bool, empty func(name string) bool) string {
	var segments []string
	for segment := range strings.SplitSeq(strings.Trim(route, "/"), "/") {
		text, used := patternSegment(segment, params)
		missing := used > 0 && strings.HasSuffix(segment, "?") && empty(params[0])
		if params = params[used:]; !missing {
			segments = append(segments, text)
		}
	}
	pattern := "/" + strings.Join(segments, "/")
	if pattern == "/" || strict && strings.HasSuffix(route, "/") {
		return strings.TrimSuffix(pattern, "/") + "/{$}"
	}
	return pattern
}

// patternSegment returns a segment of a route of fiber as a pattern, and how many of the parameters it has.
func patternSegment(segment string, params []string) (pattern string, used int) {
	var text strings.Builder
	for i := 0; i < len(segment); i++ {
		switch b := segment[i]; {
		case b == '\\' && i+1 < len(segment):
			i++
			text.WriteString(url.PathEscape(segment[i : i+1]))
		case (b == '*' || b == '+') && used < len(params):
			used++
			text.WriteString("{rest...}")
		case b == ':' && used < len(params) && strings.HasPrefix(segment[i+1:], params[used]):
			i += len(params[used])
			text.WriteString("{" + params[used] + "}")
			used++
			if strings.HasPrefix(segment[i+1:], "<") { // what the value has to be
				if end := strings.LastIndexByte(segment, '>'); end > i {
					i = end
				}
			}
			if strings.HasPrefix(segment[i+1:], "?") {
				i++
			}
		default:
			text.WriteByte(b)
		}
	}
	return text.String(), used
}

// Spelled returns the target of a request with the segments that the route has word for word spelled as there: /ORDERS and
// /orders are one route of fiber unless it is configured otherwise.
func Spelled(target, pattern string) string {
	path, query, asked := strings.Cut(target, "?")
	words, segments := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i := range min(len(words), len(segments)) {
		if strings.HasSuffix(words[i], "...}") {
			break
		}
		if strings.EqualFold(words[i], segments[i]) {
			segments[i] = words[i]
		}
	}
	path = strings.Join(segments, "/")
	if asked {
		path += "?" + query
	}
	return path
}
