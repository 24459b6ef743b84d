package middleware

import (
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// Difference returns the fields of after that are not in before or have other values there, each with all of
// its values, as far as another client may see them later. What is left out belongs to one client (cookies,
// credentials), to one connection (hop-by-hop fields), to one transfer (Content-Length, trailers) or to one
// moment (Date, Age, rate limits, Retry-After), or is the business of middlewares around the guard, which set
// it anew (CORS, traces). A field that after lacks is not reported.
//
// What a compressing middleware inside the guard sets is kept, with its compressed body: compression belongs
// around the guard, where each request is answered as it can read.
func Difference(before, after http.Header) http.Header {
	diff := changed(before, after)
	named := listed(after["Connection"], after["Trailer"])
	maps.DeleteFunc(diff, func(name string, _ []string) bool {
		// net/http sends a field under the name it has in the map, so an uncommon case does not make it harmless.
		name = textproto.CanonicalMIMEHeaderKey(name)
		return named[name] || unrecorded(name)
	})
	return diff
}

// listed returns the names in fields that list other fields.
func listed(fields ...[]string) map[string]bool {
	named := map[string]bool{}
	for _, lines := range fields {
		for _, line := range lines {
			for name := range strings.SplitSeq(line, ",") {
				named[textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))] = true
			}
		}
	}
	return named
}

// changed returns copies of the fields of after that before lacks or has with other values.
func changed(before, after http.Header) http.Header {
	diff := http.Header{}
	for name, values := range after {
		// The presence counts, too: a Content-Type without values keeps net/http from guessing one.
		if old, had := before[name]; !had || !slices.Equal(old, values) {
			diff[name] = slices.Clone(values)
		}
	}
	return diff
}

// unrecorded reports whether a field must not be sent to another request than the one it was made for.
func unrecorded(name string) bool {
	switch name {
	case "Set-Cookie", "Set-Cookie2", "Authorization", "Www-Authenticate", "Authentication-Info",
		"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info":
		return true
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	case "Date", "Age", "Content-Length", "Retry-After", "Server-Timing", "Traceparent":
		return true
	}
	for _, prefix := range []string{http.TrailerPrefix, "Access-Control-", "Ratelimit", "X-Ratelimit"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// replace makes header a copy of content. The map has to stay: the handler, middlewares and the server hold it.
func replace(header, content http.Header) {
	clear(header)
	maps.Copy(header, content.Clone())
}

// Replay sets the fields of the response in the header of another one: those of the same name are replaced,
// since a middleware around the guard may have set its own, and two of X-Request-Id or
// Access-Control-Allow-Origin are worse than one. The field named marker says "true", and Cache-Control
// forbids to store. If the body was omitted, Idempotency-Replay says so, and the recorded fields that describe
// its coding or digest are left out: they would be wrong about an empty one.
func (r *Response) Replay(header http.Header, marker string) {
	recorded := r.Header.Clone()
	if r.Omitted {
		for _, name := range []string{"Content-Encoding", "Content-Digest", "Content-Md5", "Digest"} {
			recorded.Del(name)
		}
		header.Set(omittedField, "omitted")
	}
	maps.Copy(header, recorded)
	header.Set(marker, "true")
	header.Set("Cache-Control", "no-store")
}
