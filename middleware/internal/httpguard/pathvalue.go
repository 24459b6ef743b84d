package httpguard

import (
	"net/http"
	"net/url"
	"strings"
)

// climbs returns true if a segment of the path is "..", however it is spelled.
//
// Why such a request is refused: net/http and most proxies resolve these segments, other routers take them as text, and a
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
// Why: chi takes values from the escaped path if the client has escaped more than it must, and gin does if it is told to.
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
