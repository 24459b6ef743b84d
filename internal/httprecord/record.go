// Package httprecord has what the HTTP guards keep in Redis, and what the command and the inspector know of it: the names of
// their locks and records, responses as they are recorded, and the form in which people write a response or a client its key. Of
// other guards it knows the names of records whose results nobody else can write.
package httprecord

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Prefix keeps the locks and records of requests apart from others.
const Prefix = "http:"

// names are those that guards make of keys.
var names = regexp.MustCompile(`^` + Prefix + `(?:\{[\w-]{43}\}:)?[\w-]{43}$`)

// IsName reports whether an HTTP guard makes such names for its records.
func IsName(name string) bool { return names.MatchString(name) }

// encoded are the names of records of RPCs and messages.
var encoded = regexp.MustCompile(`^(?:rpc|msg):[\w-]{43}$`)

// IsEncoded reports whether a record has the name of another guard whose results only the guard itself can encode, with its
// Resolve in Go: the guards of RPCs and of messages.
func IsEncoded(name string) bool { return encoded.MatchString(name) }

// Response is a response as it is recorded and replayed.
type Response struct {
	// Status is 0 if the handler took over the connection before it set a status.
	Status int
	// Header has the fields that the handler added or changed.
	Header http.Header
	// Body is all of the body, or empty.
	Body []byte
	// Omitted is true if there was a body, or may have been, which was not recorded.
	Omitted bool
	// Around is how many values of a field come from a middleware around the guard, to which the handler has added.
	Around map[string]int
	// Unbegun is true if the handler has at most set a status, which is sent when it has returned.
	Unbegun bool
}

// line is what stands before the body, in one line of JSON: so that the body is kept as it is, without base64.
type line struct {
	Status  int         `json:"status"`
	Header  http.Header `json:"header,omitempty"`
	Omitted bool        `json:"omitted,omitempty"`
	// Around came later. A version that does not know it replays all values.
	Around map[string]int `json:"around,omitempty"`
	// Unbegun came later. A version that does not know it replays an empty body.
	Unbegun bool `json:"unbegun,omitempty"`
}

// Encode returns the response as the value of a record, for [Decode].
func (r *Response) Encode() []byte {
	head, err := json.Marshal(line{
		Status: r.Status, Header: mapTexts(r.Header, func(text string) string { return widen(FieldValue(text)) }), Omitted: r.Omitted, Around: mapNames(r.Around, widen),
		Unbegun: r.Unbegun,
	})
	if err != nil {
		panic(err) // not with fields of these types
	}
	return append(append(head, '\n'), r.Body...)
}

// Decode reads the value of a record that was not encrypted. It fails on anything that could not be replayed, and ignores what
// a later version may add. It leaves out fields that no guard records, since the record may have been changed in Redis. The body
// is a part of b.
func Decode(b []byte) (*Response, error) {
	head, body, found := bytes.Cut(b, []byte("\n"))
	if !found {
		return nil, errors.New("holdfast: recorded response: no line before the body")
	}
	var l line
	if err := json.Unmarshal(head, &l); err != nil {
		return nil, fmt.Errorf("holdfast: recorded response: %w", err)
	}
	if l.Status != 0 && !ValidStatus(l.Status) {
		return nil, fmt.Errorf("holdfast: recorded response: status %d", l.Status)
	}
	header := replayable(mapTexts(l.Header, narrow))
	for name, values := range header {
		if slices.ContainsFunc(values, func(value string) bool { return !ValidFieldValue(value) }) {
			return nil, fmt.Errorf("holdfast: recorded response: the field %s has a line break or a NUL", name)
		}
	}
	return &Response{
		Status: l.Status, Header: header, Body: body, Omitted: l.Omitted, Around: mapNames(l.Around, narrow),
		Unbegun: l.Unbegun,
	}, nil
}

// ValidStatus reports whether net/http would send that status rather than panic.
func ValidStatus(status int) bool { return status >= 100 && status <= 999 }

// mapTexts keeps a field without values, and one whose list is nil: they keep net/http from setting its own. What is in ASCII
// without line breaks and NULs, as most headers are, stays as it is.
func mapTexts(h http.Header, convert func(string) string) http.Header {
	if h != nil && allPlain(h) {
		return h
	}
	mapped := make(http.Header, len(h))
	for name, values := range h {
		var list []string
		for _, v := range values {
			list = append(list, convert(v))
		}
		mapped[convert(name)] = list
	}
	return mapped
}

func allPlain(h http.Header) bool {
	for name, values := range h {
		if !isPlain(name) || slices.ContainsFunc(values, func(v string) bool { return !isPlain(v) }) {
			return false
		}
	}
	return true
}

func isPlain(text string) bool {
	return ValidFieldValue(text) && !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// mapNames returns nil for nil, as most answers have it.
func mapNames(numbers map[string]int, convert func(string) string) map[string]int {
	if numbers == nil {
		return nil
	}
	mapped := make(map[string]int, len(numbers))
	for name, n := range numbers {
		mapped[convert(name)] = n
	}
	return mapped
}

// widen makes a character of each byte: header fields may hold any byte from 0x80 on, in Latin-1 for example,
// and JSON replaces those that are not UTF-8.
func widen(text string) string {
	wide := make([]rune, len(text))
	for i := range len(text) {
		wide[i] = rune(text[i])
	}
	return string(wide)
}

// narrow undoes widen.
func narrow(text string) string {
	bytes := make([]byte, 0, len(text))
	for _, r := range text {
		bytes = append(bytes, byte(r))
	}
	return string(bytes)
}

// FieldName matches the name of a header field: a token of RFC 9110, section 5.6.2.
var FieldName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// splitting are the characters with which a value could end its field or the whole header.
const splitting = "\r\n\x00"

var oneLine = strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ")

// FieldValue returns the value of a header field as net/http sends it: on one line. A blank stands for a NUL too.
func FieldValue(value string) string { return oneLine.Replace(value) }

// ValidFieldValue reports whether a value can be sent without ending its field or the whole header.
func ValidFieldValue(value string) bool { return !strings.ContainsAny(value, splitting) }

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
	return slices.ContainsFunc(unrecordedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
		slices.ContainsFunc(unrecordedEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// unrecordedFields are in the form of [textproto.CanonicalMIMEHeaderKey].
var unrecordedFields = []string{
	// of one client
	"Set-Login", "Phpsessid", "Jsessionid", "X-Firebase-Appcheck",
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
	"Csrf", "Xsrf", "Csrftoken", "Xsrftoken", "Secret", "Password", "Passcode", "Credential", "Credentials", "Apikey",
	"Bearer", "Nonce", "Otp", "Totp",
}

// unrecordedEnds are the last words in the names of such fields, where one word alone says too little.
var unrecordedEnds = []string{"Api-Key", "Private-Key", "Access-Key", "Magic-Link"}

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
