package httplock

import (
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// The options in this file are for Once and Idempotent; Exclusive keeps no records and refuses them.

// The failure policies, for [WithFailurePolicy].
const (
	RetryFailures = core.RetryFailures
	HoldFailures  = core.HoldFailures
)

// WithRetention sets how long a record of Once or Idempotent is kept after its run. Defaults to 24 hours.
func WithRetention(retention time.Duration) Option { return httpguard.WithRetention(retention) }

// WithRetentionUntil sets the end of a record's retention, as a function of the time at which its request begins: for
// instance midnight, for one order a day. A refused request gets that time as Retry-After. Several goroutines may call
// the function at once. Defaults to none: [WithRetention] applies.
func WithRetentionUntil(until func(now time.Time) time.Time) Option {
	return httpguard.WithRetentionUntil(until)
}

// WithFailurePolicy sets what a failed run leaves: one that answered 5xx, panicked, crashed, or returned without an
// answer because its context had ended. With [core.RetryFailures] the next request runs. With [core.HoldFailures] all
// requests get 409 outcome-unknown until an operator has found out and calls Resolve or Forget of the
// [Guard]. Defaults to core.RetryFailures.
func WithFailurePolicy(policy core.FailurePolicy) Option { return httpguard.WithFailurePolicy(policy) }

// WithCompletion sets a function that judges how a handler ended, unless the handler has called [core.Complete], [core.Release]
// or [core.Hold]. The function gets the body, up to [WithRecordLimit]. It is not called if a guard further in has refused
// the request. [Auto] leaves it to the default judgement:
//
//   - 2xx and 3xx are completed.
//   - 5xx, 499, panics, reported errors and no answer follow the failure policy.
//   - 401, 403, 407, 408, 409, 421, 423, 425 and 429 are released.
//   - Other 4xx are released by Once and completed by Idempotent.
//
// Defaults to the default judgement.
func WithCompletion(judge func(Outcome) Disposition) Option { return httpguard.WithCompletion(judge) }

// WithDetachedContext keeps the end of the request's context from the handler: work that should not be interrupted
// continues when the client leaves. A lost lease still ends it. Defaults to passing it on.
func WithDetachedContext() Option { return httpguard.WithDetachedContext() }

// WithReplay makes Once answer a second request with the recorded answer of the first, instead of refusing it. Any
// client that can send the key gets that answer, so join the key with the user. Defaults to refusing it with 409;
// Idempotent replays.
func WithReplay() Option { return httpguard.WithReplay() }

// WithRecordLimit sets how many bytes of body are held back until the record is written, and kept for replays and
// judges. A larger answer is sent as it is written, and not replayed: a request with its key gets 409 already-completed, or
// status and header again if the status is 4xx. At most 64 MiB. Defaults to 256 KiB.
func WithRecordLimit(bytes int) Option { return httpguard.WithRecordLimit(bytes) }

// WithQuota bounds how many records the keys of one scope of Idempotent may have at a time; one more is refused with
// 429. Defaults to 0: none.
func WithQuota(most int) Option { return httpguard.WithQuota(most) }

// Codec encrypts and authenticates recorded answers, so that a reader of Redis cannot read them, and a writer cannot forge them. It has
// to be an AEAD, with the name as additional data: the name is that of the record, so that one record cannot replace another. Open must
// return an error for what Seal has not returned for that name. A Codec must be safe for concurrent use.
type Codec = httpguard.Codec

// NewAESGCM returns a Codec that encrypts and authenticates with AES-GCM (NIST SP 800-38D), with a random nonce for
// each record. Keys have 16, 24 or 32 bytes. To change the key, pass the new one first and the older ones behind it,
// on all instances, for as long as records are kept. The first key encrypts, and all keys decrypt.
func NewAESGCM(key []byte, older ...[]byte) (Codec, error) {
	return httpguard.NewAESGCM(key, older...)
}

// WithCodec sets what encrypts recorded answers, for instance [NewAESGCM]. Nil is an error. Defaults to none.
func WithCodec(codec Codec) Option { return httpguard.WithCodec(codec) }

// WithFingerprint sets which part of a request is compared with that of an earlier one with the same key. The
// operation is always compared: method, host of the route, and path, both as it came in and behind
// [net/http.StripPrefix]. Another request is refused with 422. Nil is all of it: query, content type, content
// encoding and body, of a form its fields, of a multipart body its parts. A body larger than [WithBodyLimit] cannot be compared and is refused
// with 413. Nor can one that was read in front of the guard: it is refused with 500 guard-failed. Once compares nothing without this
// option. Defaults to nil for Idempotent.
func WithFingerprint(of func(Payload) []byte) Option { return httpguard.WithFingerprint(of) }

// WithComparedHeader adds header fields to what is compared of a request, for operations that a field tells apart:
// X-HTTP-Method-Override, X-Amz-Target, SOAPAction. They are also in [Payload.Header], for the function of [WithFingerprint].
// Defaults to none.
func WithComparedHeader(names ...string) Option { return httpguard.WithComparedHeader(names...) }

// CanonicalJSON is a function for [WithFingerprint]: two bodies in JSON are equal if they differ only in white space, in the order
// of the names in objects, and in how strings are escaped. Numbers are compared as they are written: 1 and 1.0 differ, and so do
// large ones that a float64 would make equal. The query counts too, and the content type with its parameters, but for the
// charset UTF-8.
//
// A body of another type, or with a Content-Encoding, is compared as without the function. So is one that is not exactly one JSON value, that has a name
// twice in an object, or an escaped half of a surrogate pair: programs read these in different ways.
func CanonicalJSON(p Payload) []byte { return httpguard.CanonicalJSON(p) }

// WithKeyHeader sets the header field that Idempotent reads the key from. Defaults to Idempotency-Key.
func WithKeyHeader(name string) Option { return httpguard.WithKeyHeader(name) }
