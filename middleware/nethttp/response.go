package httplock

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// MarkerField is the header field that marks a replay.
const MarkerField = "Idempotency-Replayed"

// omittedField says in a response that the recorded one had a body, of which nothing is left.
const omittedField = "Idempotency-Replay"

// Response is an answer as it is recorded and replayed.
type Response struct {
	// Status of the answer. It is 0 if the handler took over the connection before it set a status.
	Status int
	// Header are the fields that the handler added or changed: see [difference].
	Header http.Header
	// Body is all of the body, or empty.
	Body []byte
	// Omitted says that there was a body, or may have been, which was not recorded.
	Omitted bool

	// around is how many values of a field come from a middleware around the guard, to which the handler has added.
	around map[string]int
	// unbegun is true if the handler has at most set a status, which is sent when it has returned.
	unbegun bool
	// streamed is true if the body was sent as it was written, and only the handler's return shows that it ended.
	streamed bool
	// marker is the header field that marks the replay; "" for [MarkerField].
	marker string
}

// replayable returns true if the response can be sent again: the response of a connection that was taken over cannot.
func replayable(r *Response) bool { return r.Status >= http.StatusOK }

// encode returns the response as guards record it.
func (r *Response) encode() []byte {
	kept := httprecord.Response{
		Status: r.Status, Header: r.Header, Body: r.Body, Omitted: r.Omitted, Around: r.around, Unbegun: r.unbegun,
	}
	return kept.Encode()
}

// decodeResponse reads what [Response.encode] has returned.
func decodeResponse(value []byte) (*Response, error) {
	kept, err := httprecord.Decode(value)
	if err != nil {
		return nil, err
	}
	return &Response{
		Status: kept.Status, Header: kept.Header, Body: kept.Body, Omitted: kept.Omitted, around: kept.Around, unbegun: kept.Unbegun,
	}, nil
}

// difference returns the fields of after that are missing in before or have other values there, each with all of its
// values, as far as another client may see them later. It does not report a field that after lacks. It leaves out what
// belongs to
//
//   - one client: cookies, credentials, sessions and tokens. That is any field whose name has a word such as Cookie, Auth,
//     Session, Token, Nonce, OTP or CSRF, or ends in Api-Key, Private-Key and the like,
//   - one request: X-Request-Id, Request-Id, X-Correlation-Id and the fields of traces (Traceparent, Tracestate,
//     Baggage, B3, X-B3-*, X-Amzn-Trace-Id, X-Cloud-Trace-Context, Uber-Trace-Id, Sentry-Trace, X-Datadog-*),
//   - one connection or transfer: hop-by-hop fields, Content-Length, trailers,
//   - one moment: Date, Age, rate limits, Retry-After, Server-Timing,
//   - middlewares around the guard, which set it anew: CORS,
//   - all of a site, and not to one answer: Strict-Transport-Security, Alt-Svc, Clear-Site-Data and the like.
//
// It keeps what a compressing middleware inside the guard sets, with its compressed body. Compression belongs around
// the guard, where each client gets a coding that it can read.
func difference(before, after http.Header) http.Header {
	diff := changed(before, after)
	named := listed(after["Connection"], after["Trailer"])
	maps.DeleteFunc(diff, func(name string, _ []string) bool {
		// net/http sends a field under the name it has in the map, so an uncommon case does not make it harmless.
		name = textproto.CanonicalMIMEHeaderKey(name)
		return named[name] || httprecord.Unrecorded(name)
	})
	return diff
}

// changes returns a response of that status with the [difference] of two headers.
func changes(status int, before, after http.Header) *Response {
	r := &Response{Status: status, Header: difference(before, after)}
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

// listed returns the names in fields that list other fields, nil if there are none.
func listed(fields ...[]string) (named map[string]bool) {
	for _, lines := range fields {
		for _, line := range lines {
			if named == nil {
				named = make(map[string]bool)
			}
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

// replayHeader sets the fields of the response in the header of another one. Fields of the same name are replaced, since a
// middleware around the guard may have set its own, and two of Content-Type or Vary are worse than one. Where the handler
// has added values to the values of a middleware around the guard, only the handler's are added here too. [MarkerField]
// is set to "true", and Cache-Control forbids storing. If the body was omitted, Idempotency-Replay says
// so. Then the recorded fields that describe the body's coding or digest are left out, because they would be wrong for
// an empty body.
func replayHeader(r *Response, header http.Header) {
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
	header.Set(cmp.Or(r.marker, MarkerField), "true")
	header.Set("Cache-Control", "no-store")
}

// replay answers with a recorded response: see [replayHeader].
func replay(r *Response, w http.ResponseWriter) {
	replayHeader(r, w.Header())
	w.WriteHeader(r.Status)
	switch {
	case len(r.Body) > 0:
		// A writer that compresses changes the header in the first Write, so nothing sends it before that.
		_, _ = w.Write(r.Body) // an error means that the client does not read its response
	case !r.unbegun, r.Status < http.StatusMultipleChoices:
		headerNow(w)
	}
	// Otherwise something around the guard may have added a body to the status of the first handler, and adds it again.
}

// Codec encrypts and authenticates recorded answers, so that a reader of Redis cannot read them, and a writer cannot
// forge them. It has to be an AEAD, with the name as additional data: the name is the record's, so that one record
// cannot replace another. Open must return an error for what Seal has not returned for that name. A Codec must be safe
// for concurrent use. Its methods are
//
//	Seal(plain []byte, name string) (sealed []byte, err error)
//	Open(sealed []byte, name string) (plain []byte, err error)
type Codec interface {
	Seal(plain []byte, name string) (sealed []byte, err error)
	Open(sealed []byte, name string) (plain []byte, err error)
}

// NewAESGCM returns a Codec that encrypts and authenticates with AES-GCM (NIST SP 800-38D), with a random nonce for
// each record. Keys have 16, 24 or 32 bytes. To change the key, pass the new one first and the older ones behind it,
// on all instances, for as long as records are kept. The first key encrypts, and all keys decrypt.
func NewAESGCM(key []byte, older ...[]byte) (Codec, error) {
	var c aesGCM
	for i, k := range append([][]byte{key}, older...) {
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("holdfast: key %d of the codec: %w", i+1, err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("holdfast: key %d of the codec: %w", i+1, err)
		}
		c = append(c, aead)
	}
	return c, nil
}

type aesGCM []cipher.AEAD

func (c aesGCM) Seal(plain []byte, name string) ([]byte, error) {
	return c[0].Seal(nil, nil, plain, []byte(name)), nil
}

func (c aesGCM) Open(sealed []byte, name string) ([]byte, error) {
	for _, aead := range c {
		if plain, err := aead.Open(nil, nil, sealed, []byte(name)); err == nil {
			return plain, nil
		}
	}
	return nil, errors.New("holdfast: recorded answer: no key of the codec decrypts it")
}

// plain is the Codec of those who have none.
type plain struct{}

func (plain) Seal(text []byte, _ string) ([]byte, error) { return text, nil }
func (plain) Open(text []byte, _ string) ([]byte, error) { return text, nil }
