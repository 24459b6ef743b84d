package httplock

import (
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// The options in this file are for Once and Idempotent; Exclusive keeps no records and refuses them.

// The failure policies, for [WithFailurePolicy].
const (
	RetryFailures = core.RetryFailures
	HoldFailures  = core.HoldFailures
)

// WithRetention sets how long a record of Once or Idempotent is kept after its run. Defaults to 24 hours.
func WithRetention(retention time.Duration) Option { return middleware.WithRetention(retention) }

// WithRetentionUntil sets the end of a record's retention, for a request that begins now: see
// [middleware.WithRetentionUntil]. Defaults to none: [WithRetention] applies.
func WithRetentionUntil(until func(now time.Time) time.Time) Option {
	return middleware.WithRetentionUntil(until)
}

// WithFailurePolicy sets what a failed run leaves, see [middleware.WithFailurePolicy]. Defaults to [RetryFailures].
func WithFailurePolicy(policy core.FailurePolicy) Option { return middleware.WithFailurePolicy(policy) }

// WithCompletion sets a function that judges how a handler ended, see [middleware.WithCompletion]. Defaults to the
// default judgement there.
func WithCompletion(judge func(Outcome) Disposition) Option { return middleware.WithCompletion(judge) }

// WithDetachedContext keeps the end of the request's context from the handler, see [middleware.WithDetachedContext].
// Defaults to passing it on.
func WithDetachedContext() Option { return middleware.WithDetachedContext() }

// WithReplay makes Once replay the recorded answer, see [middleware.WithReplay]. Defaults to refusing with 409.
func WithReplay() Option { return middleware.WithReplay() }

// WithRecordLimit sets how many bytes of an answer are held back and recorded, see [middleware.WithRecordLimit].
// Defaults to 256 KiB.
func WithRecordLimit(bytes int) Option { return middleware.WithRecordLimit(bytes) }

// WithQuota bounds how many records the keys of one scope of Idempotent may have at a time; one more is refused with
// 429. Defaults to 0: none.
func WithQuota(most int) Option { return middleware.WithQuota(most) }

// Codec encrypts and authenticates recorded answers, see [middleware.Codec].
type Codec = middleware.Codec

// NewAESGCM returns a Codec that encrypts and authenticates with AES-GCM (NIST SP 800-38D), with a random nonce for
// each record. Keys have 16, 24 or 32 bytes. To change the key, pass the new one first and the older ones behind it,
// on all instances, for as long as records are kept. The first key encrypts, and all keys decrypt.
func NewAESGCM(key []byte, older ...[]byte) (Codec, error) {
	return middleware.NewAESGCM(key, older...)
}

// WithCodec sets what encrypts recorded answers, for instance [NewAESGCM]. Nil is an error. Defaults to none.
func WithCodec(codec Codec) Option { return middleware.WithCodec(codec) }

// WithFingerprint sets which part of a request is compared with that of an earlier one with the same key, see
// [middleware.WithFingerprint]. Defaults to all of it for Idempotent, nothing for Once.
func WithFingerprint(of func(Payload) []byte) Option { return middleware.WithFingerprint(of) }

// WithComparedHeader adds header fields to what is compared of a request, for operations that a field tells apart, see
// [middleware.WithComparedHeader]. Defaults to none.
func WithComparedHeader(names ...string) Option { return middleware.WithComparedHeader(names...) }

// CanonicalJSON is a function for [WithFingerprint]: bodies in JSON are equal whatever the order of their names and their white
// space, see [middleware.CanonicalJSON].
func CanonicalJSON(p Payload) []byte { return middleware.CanonicalJSON(p) }

// WithKeyHeader sets the header field that Idempotent reads the key from. Defaults to Idempotency-Key.
func WithKeyHeader(name string) Option { return middleware.WithKeyHeader(name) }
