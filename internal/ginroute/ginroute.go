// Package ginroute translates routes of gin for the key functions, which expect routes of http.ServeMux: for the adapter, and for
// the command, which does not import gin.
package ginroute

import (
	"net/url"
	"strings"
)

// Pattern returns a route of gin in the form of http.ServeMux: "/cart/{id}" for "/cart/:id". A slash at its end, which
// stands for itself in gin, is "/{$}" there.
func Pattern(fullPath string) string {
	const colon = "\x00" // in place of one that gin takes as it is
	segments := strings.Split(strings.ReplaceAll(fullPath, `\:`, colon), "/")
	for i, segment := range segments {
		literal, wildcard := segment, ""
		if begin := strings.IndexAny(segment, ":*"); begin >= 0 {
			literal, wildcard = segment[:begin], "{"+segment[begin+1:]+"}"
			if segment[begin] == '*' {
				wildcard = "{" + segment[begin+1:] + "...}"
			}
		}
		segments[i] = url.PathEscape(strings.ReplaceAll(literal, colon, ":")) + wildcard
	}
	text := strings.Join(segments, "/")
	if strings.HasSuffix(text, "/") {
		text += "{$}"
	}
	return text
}
