package httpguard

import (
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// Difference returns the fields of after that are missing in before or have other values there, each with all of its
// values, as far as another client may see them later. It does not report a field that after lacks. It leaves out what
// belongs to
//
//   - one client: cookies, credentials, sessions and tokens. That is any field whose name has a word such as Cookie, Auth,
//     Session, Token or CSRF, and X-Api-Key,
//   - one request: X-Request-Id, Request-Id, X-Correlation-Id and the fields of traces (Traceparent, Tracestate,
//     Baggage, B3, X-B3-*, X-Amzn-Trace-Id, X-Cloud-Trace-Context, Uber-Trace-Id, Sentry-Trace, X-Datadog-*),
//   - one connection or transfer: hop-by-hop fields, Content-Length, trailers,
//   - one moment: Date, Age, rate limits, Retry-After, Server-Timing,
//   - middlewares around the guard, which set it anew: CORS,
//   - all of a site, and not to one answer: Strict-Transport-Security, Alt-Svc, Clear-Site-Data and the like.
//
// It keeps what a compressing middleware inside the guard sets, with its compressed body. Compression belongs around
// the guard, where each client gets a coding that it can read.
func Difference(before, after http.Header) http.Header {
	diff := changed(before, after)
	named := listed(after["Connection"], after["Trailer"])
	maps.DeleteFunc(diff, func(name string, _ []string) bool {
		// net/http sends a field under the name it has in the map, so an uncommon case does not make it harmless.
		name = textproto.CanonicalMIMEHeaderKey(name)
		return named[name] || httprecord.Unrecorded(name)
	})
	return diff
}

// changes returns a response of that status with the [Difference] of two headers.
func changes(status int, before, after http.Header) *Response {
	r := &Response{Status: status, Header: Difference(before, after)}
	for name, values := range r.Header {
		old := before[name]
		if len(old) == 0 || len(old) >= len(values) || !slices.Equal(old, values[:len(old)]) {
			continue
		}
		if r.around == nil {
			r.around = make(map[string]int)
		}
		r.around[name] = len(old)
	}
	return r
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

// replace makes header a copy of content. The map has to stay: the handler, middlewares and the server hold it.
func replace(header, content http.Header) {
	clear(header)
	maps.Copy(header, content.Clone())
}

// Replay sets the fields of the response in the header of another one. Fields of the same name are replaced, since a
// middleware around the guard may have set its own, and two of Content-Type or Vary are worse than one. Where the handler
// has added values to those of a middleware around the guard, only the handler's are added here too. [MarkerField]
// is set to "true", and Cache-Control forbids storing. If the body was omitted, Idempotency-Replay says
// so. Then the recorded fields that describe the body's coding or digest are left out, because they would be wrong for
// an empty body.
func Replay(r *Response, header http.Header) {
	recorded := r.Header.Clone()
	if r.Omitted {
		for _, name := range []string{"Content-Encoding", "Content-Digest", "Content-Md5", "Digest"} {
			recorded.Del(name)
		}
		header.Set(omittedField, "omitted")
	}
	for name, values := range recorded {
		if n := r.around[name]; n > 0 && n < len(values) {
			values = append(slices.Clone(header[name]), values[n:]...)
		}
		header[name] = values
	}
	header.Set(MarkerField, "true")
	header.Set("Cache-Control", "no-store")
}

// Send answers with a recorded response: see [Replay].
func Send(r *Response, w http.ResponseWriter) {
	Replay(r, w.Header())
	w.WriteHeader(r.Status)
	switch {
	case len(r.Body) > 0:
		// A writer that compresses changes the header in the first Write, so nothing sends it before that.
		_, _ = w.Write(r.Body) // nobody is left to tell of a client that does not read its answer
	case !r.unbegun, r.Status < http.StatusMultipleChoices:
		headerNow(w)
	}
	// Otherwise something around the guard may have added a body to the status of the first handler, and adds it again.
}
