package httprecord

import (
	"maps"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
)

// FieldName matches the name of a header field: a token of RFC 9110, section 5.6.2.
var FieldName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// Unrecorded reports whether a field must not be sent to another request than the one it was made for.
func Unrecorded(name string) bool {
	if slices.Contains(unrecordedFields, name) {
		return true
	}
	for word := range strings.SplitSeq(name, "-") {
		if slices.Contains(unrecordedWords, word) {
			return true
		}
	}
	return slices.ContainsFunc(unrecordedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// unrecordedFields are in the form of [textproto.CanonicalMIMEHeaderKey].
var unrecordedFields = []string{
	// of one client
	"X-Api-Key", "Api-Key", "Set-Login",
	// of one request
	"X-Request-Id", "Request-Id", "X-Correlation-Id", "Correlation-Id", "Request-Context", "X-Amzn-Requestid",
	"Traceparent", "Tracestate", "Traceresponse", "Baggage", "B3", "X-Trace-Id", "X-Amzn-Trace-Id",
	"X-Cloud-Trace-Context", "Uber-Trace-Id", "Sentry-Trace", "Cf-Ray",
	// of one connection or transfer
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length",
	// of one moment
	"Date", "Age", "Retry-After", "Server-Timing",
	// of all of a site
	"Strict-Transport-Security", "Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct", "Alt-Svc", "Clear-Site-Data",
	"Nel", "Report-To", "Reporting-Endpoints", "Service-Worker-Allowed", "Origin-Agent-Cluster", "Accept-Ch", "Critical-Ch",
}

// unrecordedWords are the words in the names of fields of one client, between hyphens.
var unrecordedWords = []string{
	"Cookie", "Cookie2", "Auth", "Authorization", "Authentication", "Authenticate", "Session", "Sessionid", "Token", "Jwt",
	"Csrf", "Xsrf", "Csrftoken", "Xsrftoken", "Secret", "Password", "Credential", "Credentials", "Apikey",
}

// replayable returns the fields of a record that a handler may have set and a guard has recorded. Whoever can write to Redis
// may have added others.
func replayable(recorded http.Header) http.Header {
	maps.DeleteFunc(recorded, func(name string, _ []string) bool {
		return !FieldName.MatchString(name) || Unrecorded(textproto.CanonicalMIMEHeaderKey(name))
	})
	return recorded
}

var unrecordedPrefixes = []string{
	http.TrailerPrefix, "Access-Control-", "Ratelimit", "X-Ratelimit", "X-B3-", "X-Datadog-", "Uberctx-",
}
