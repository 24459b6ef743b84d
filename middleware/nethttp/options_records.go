package httplock

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// The options in this file are for Once and Idempotent; Exclusive keeps no records and refuses them.

// WithRetentionUntil sets the end of a record's retention, as a function of the time at which its request begins: for
// instance midnight, for one order a day. A refused request gets that time as Retry-After. Several goroutines may call
// the function at once. Defaults to none: [core.WithRetention] applies. Of both, the last one counts.
func WithRetentionUntil(until func(now time.Time) time.Time) Option {
	return httpguard.NewOption("WithRetentionUntil", func(c *httpguard.Config) { c.RetentionUntil = until })
}

// WithCompletion sets a function that judges how a handler ended, unless the handler has called [core.Complete], [core.Release]
// or [core.Hold]. The function gets the body, up to [core.WithMaxValue]. It is not called if a guard further in has refused
// the request. [Auto] leaves it to the default judgement:
//
//   - 2xx and 3xx are completed.
//   - 5xx, 499, panics, reported errors and no answer follow the failure policy.
//   - 401, 403, 407, 408, 409, 421, 423, 425 and 429 are released.
//   - Other 4xx are released by Once and completed by Idempotent.
//
// Defaults to the default judgement.
func WithCompletion(judge func(Handled) Disposition) Option {
	return httpguard.NewOption("WithCompletion", func(c *httpguard.Config) { c.Completion = judge })
}

// WithDetachedContext keeps the end of the request's context from the handler: work that should not be interrupted
// continues when the client leaves. A lost lease still ends it. Defaults to passing it on.
func WithDetachedContext() Option {
	return httpguard.NewOption("WithDetachedContext", func(c *httpguard.Config) { c.Detached = true })
}

// WithReplay makes Once answer a second request with the recorded answer of the first, instead of refusing it. Any
// client that can send the key gets that answer, so join the key with the user. Defaults to refusing it with 409;
// Idempotent replays.
func WithReplay() Option {
	return httpguard.NewOption("WithReplay", func(c *httpguard.Config) { c.Replay = true })
}

// Codec encrypts and authenticates recorded answers, so that a reader of Redis cannot read them, and a writer cannot forge them. It has
// to be an AEAD, with the name as additional data: the name is that of the record, so that one record cannot replace another. Open must
// return an error for what Seal has not returned for that name. A Codec must be safe for concurrent use. Its methods are
//
//	Seal(plain []byte, name string) (sealed []byte, err error)
//	Open(sealed []byte, name string) (plain []byte, err error)
type Codec = httpguard.Codec

// NewAESGCM returns a Codec that encrypts and authenticates with AES-GCM (NIST SP 800-38D), with a random nonce for
// each record. Keys have 16, 24 or 32 bytes. To change the key, pass the new one first and the older ones behind it,
// on all instances, for as long as records are kept. The first key encrypts, and all keys decrypt.
func NewAESGCM(key []byte, older ...[]byte) (Codec, error) {
	return httpguard.NewAESGCM(key, older...)
}

// WithCodec sets what encrypts recorded answers, for instance [NewAESGCM]. If the codec can no longer decrypt an answer, it is not
// replayed: the request is refused with 409 already-completed. Nil is an error: without a codec, a wrong key would leave
// answers in plain text. Defaults to none.
func WithCodec(codec Codec) Option {
	return httpguard.NewOption("WithCodec", func(c *httpguard.Config) {
		if v := reflect.ValueOf(codec); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			c.Refuse(errors.New("holdfast: WithCodec: the codec is nil"))
		}
		c.Codec = codec
	})
}

// WithFingerprint sets which part of a request is compared with that of an earlier one with the same key. The
// operation is always compared: method, host of the route, and path, both as it came in and behind
// [net/http.StripPrefix]. Another request is refused with 422. Nil is all of it: query, content type, content
// encoding and body, of a form its fields, of a multipart body its parts. A body larger than [WithBodyLimit] cannot be compared and is refused
// with 413. Nor can one that was read in front of the guard: it is refused with 500 guard-failed. Once compares nothing without this
// option. Defaults to nil for Idempotent.
func WithFingerprint(of func(Payload) []byte) Option {
	return httpguard.NewOption("WithFingerprint", func(c *httpguard.Config) { c.Compare, c.StrictBody, c.Fingerprint = true, true, of })
}

// WithComparedHeader adds header fields to what is compared of a request, for operations that a field tells apart:
// X-HTTP-Method-Override, X-Amz-Target, SOAPAction. They are also in [Payload.Header], for the function of [WithFingerprint].
// Defaults to none.
func WithComparedHeader(names ...string) Option {
	names = slices.Clone(names)
	return httpguard.NewOption("WithComparedHeader", func(c *httpguard.Config) {
		for _, name := range names {
			c.CompareHeader = append(slices.Clip(c.CompareHeader), http.CanonicalHeaderKey(name))
		}
		slices.Sort(c.CompareHeader)
		c.CompareHeader = slices.Compact(c.CompareHeader)
	})
}

// CanonicalJSON is a function for [WithFingerprint]: two bodies in JSON are equal if they differ only in white space, in the order
// of the names in objects, and in how strings are escaped. Numbers are compared as they are written: 1 and 1.0 differ, and so do
// large ones that a float64 would make equal. The query counts too, and the content type with its parameters, but for the
// charset UTF-8.
//
// A body of another type, or with a Content-Encoding, is compared as without the function. So is one that is not exactly one JSON value, that has a name
// twice in an object, or an escaped half of a surrogate pair: programs read these in different ways.
func CanonicalJSON(p Payload) []byte { return httpguard.CanonicalJSON(p) }

// WithKeyHeader sets the header field that Idempotent reads the key from. Defaults to Idempotency-Key.
func WithKeyHeader(name string) Option {
	return httpguard.NewOption("WithKeyHeader", func(c *httpguard.Config) { c.KeyHeader = name })
}
