package httpguard

import (
	"net/http"
	"net/textproto"
	"strconv"
	"time"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Request is the input of a [Once] for one request.
type Request struct {
	// Key of the request.
	Key Key
	// Payload distinguishes it from another request with the same key.
	Payload Payload
	// Pattern is the matched pattern, in the form of [http.ServeMux]. The record gets it as its label, with the method. It is
	// empty if no pattern is known. [RequestOf] takes that of the request.
	Pattern string
	// AnswerBy is the time until which an answer can be written, see [AnswerBy]. Zero is no limit.
	AnswerBy time.Time
	// Header is the header of the request. Prefer (RFC 7240) and Early-Data (RFC 8470) are used.
	Header http.Header

	// owner is whose places to wait the request takes. [RequestOf] sets it.
	owner string
}

// answering returns the owner of the request, also of one that [RequestOf] has not made.
func (r Request) answering() string {
	if r.owner == "" {
		return ownerOf(r.Key, "")
	}
	return r.owner
}

func (r Request) label() string { return Label(r.Payload.Method, r.Pattern) }

// Payload is the content of a request, for comparison.
type Payload struct {
	Method string
	// Host is the host of the route, if its pattern has one.
	Host string
	// Target is the path as the client has sent it. Path is what [http.StripPrefix] and the like have left of it.
	Target, Path string
	// Query is the part after the question mark.
	Query       string
	ContentType string
	// ContentEncoding are the codings of the body in their order, in lower case: "gzip, br". It is empty for none, as
	// "identity" is. A body with a coding is compared as it is, unless a program in front of the guard has decoded it and
	// removed the field.
	ContentEncoding string
	// Header has the fields that [WithComparedHeader] names, as far as the request has them.
	Header http.Header
	// Body is the whole body, or as much of it as was buffered. If the body was parsed as a form in front of the guard, it
	// is a body of the same fields, in the order of their names.
	Body []byte
}

// fingerprint tells payloads apart: by all that they are made of, or by the operation and what the application finds of
// interest. The operation always counts, so that no key brings the answer of another one: the method, the host of the
// route, and the path before and after [http.StripPrefix], because each may be the same for two operations. It needs
// the secret of the keys, if there is one: paths and bodies can be guessed like users.
func (c *Config) fingerprint(p Payload) []byte {
	parts := []string{p.Method, p.Host, p.Target, p.Path}
	for _, name := range c.CompareHeader {
		values := p.Header[name]
		parts = append(append(parts, name, strconv.Itoa(len(values))), values...)
	}
	if c.Fingerprint != nil {
		parts = append(parts, string(c.Fingerprint(p)))
	} else {
		parts = append(append(parts, p.Query), p.content()...)
	}
	sum := guards.Digest(c.KeySecret, parts...)
	return sum[:]
}

// comparedHeader returns the fields of a header that are compared.
func (c *Config) comparedHeader(h http.Header) http.Header {
	compared := make(http.Header, len(c.CompareHeader))
	for _, name := range c.CompareHeader {
		if values, ok := h[name]; ok {
			compared[name] = values
		}
	}
	return compared
}

// early reports whether the request has come in TLS early data, which an attacker can send again. Several fields, and an
// invalid value, count as 1 (RFC 8470, section 5.1).
func early(h http.Header) bool {
	lines := h["Early-Data"]
	return len(lines) > 1 || len(lines) == 1 && textproto.TrimString(lines[0]) != "0"
}
