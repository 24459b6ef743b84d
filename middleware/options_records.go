package middleware

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// The options in this file are for Once and Idempotent; Exclusive keeps no records and refuses them.

// WithRetention sets how long a record is kept after its run. During that time no second request of its key runs.
// Defaults to 24 hours.
func WithRetention(retention time.Duration) Option {
	return configOption(func(c *Config) { c.Retention, c.RetentionUntil = retention, nil })
}

// WithRetentionUntil sets the end of a record's retention, as a function of the time at which its request begins: for
// instance midnight, for one order a day. A refused request gets that time as Retry-After. Several goroutines may call
// the function at once. Defaults to none: [WithRetention] applies.
func WithRetentionUntil(until func(now time.Time) time.Time) Option {
	return configOption(func(c *Config) { c.RetentionUntil = until })
}

// WithFailurePolicy sets what a failed run leaves: one that answered 5xx, panicked, crashed, or returned without an
// answer because its context had ended. With [core.RetryFailures] the next request runs. With [core.HoldFailures] all
// requests get 409 outcome-unknown until an operator has found out and calls Resolve or Forget of the guard's
// [Ledger]. Defaults to core.RetryFailures.
func WithFailurePolicy(policy core.FailurePolicy) Option {
	return configOption(func(c *Config) { c.FailurePolicy = policy })
}

// WithCompletion sets a function that judges how a handler ended, unless the handler has called [core.Complete],
// [core.Release] or [core.Hold]. The function gets the body, up to [WithRecordLimit]. It is not called if a guard further in has refused
// the request. [Auto] leaves it to the default judgement:
//
//   - 2xx and 3xx are completed.
//   - 5xx, 499, panics, reported errors and no answer follow the failure policy.
//   - 401, 403, 407, 408, 409, 421, 423, 425 and 429 are released.
//   - Other 4xx are released by Once and completed by Idempotent.
//
// Defaults to the default judgement.
func WithCompletion(judge func(Outcome) Disposition) Option {
	return configOption(func(c *Config) { c.Completion = judge })
}

// WithDetachedContext keeps the end of the request's context from the handler: work that should not be interrupted
// continues when the client leaves. A lost lease still ends it. Defaults to passing it on.
func WithDetachedContext() Option {
	return configOption(func(c *Config) { c.Detached = true })
}

// WithReplay makes Once answer a second request with the recorded answer of the first, instead of refusing it. Any
// client that can send the key gets that answer, so join the key with the user. Defaults to refusing it with 409;
// Idempotent replays.
func WithReplay() Option {
	return configOption(func(c *Config) { c.Replay = true })
}

// WithRecordLimit sets how many bytes of body are held back until the record is written, and kept for replays and
// judges. A larger answer is sent as it is written, and not replayed: a request with its key gets 409 already-completed, or
// status and header again if the status is 4xx. At most 64 MiB. Defaults to 256 KiB.
func WithRecordLimit(bytes int) Option {
	return configOption(func(c *Config) { c.RecordLimit = bytes })
}

// WithQuota bounds how many records the keys of one scope may have at a time. Without it, a client that keeps sending
// new keys could fill Redis. One more is refused with 429 too-many-keys. A record takes at most the limit of
// [WithRecordLimit] and 64 KiB for the header. Only Idempotent has scopes. 0 is none. Defaults to 0.
func WithQuota(most int) Option {
	return configOption(func(c *Config) { c.Quota = most })
}

// WithCodec sets what encrypts recorded answers before they reach Redis, for instance [NewAESGCM]. If the codec can no
// longer decrypt an answer, it is not replayed: the request is refused with 409 already-completed. A nil codec is an
// error when the guard is made: without one, a wrong key would leave answers in plain text. Defaults to none.
func WithCodec(codec Codec) Option {
	return configOption(func(c *Config) {
		if v := reflect.ValueOf(codec); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			c.refuse(errors.New("holdfast: WithCodec: the codec is nil"))
		}
		c.Codec = codec
	})
}

// LateAnswers is for frameworks that answer what their handlers return only after the guard has returned, through the
// handler's writer. A run whose handler has written nothing stays in progress until its request has ended, and what is
// written until then counts: see [Run.FinishLate]. If nothing is, the handler has not answered. Defaults to that for Echo
// only. An empty answer of other handlers is recorded before the client gets it.
func LateAnswers() Option {
	return configOption(func(c *Config) { c.LateAnswers = true })
}

// WithFingerprint sets which part of a request is compared with that of an earlier one with the same key. The
// operation is always compared: method, host of the route, and path, both as it came in and behind
// [net/http.StripPrefix]. Another request is refused with 422. Nil is all of it: query, content type, content
// encoding and body, of a form its fields, of a multipart body its parts. A body larger than [WithBodyLimit] cannot be compared and is refused
// with 413. Nor can one that was read in front of the guard: see [ErrBodyRead]. Once compares nothing without this
// option. Defaults to nil for Idempotent.
func WithFingerprint(of func(Payload) []byte) Option {
	return configOption(func(c *Config) { c.Compare, c.StrictBody, c.Fingerprint = true, true, of })
}

// WithComparedHeader adds header fields to what is compared of a request, for operations that a field tells apart:
// X-HTTP-Method-Override, X-Amz-Target, SOAPAction. They are also in [Payload.Header], for the function of [WithFingerprint].
// Defaults to none.
func WithComparedHeader(names ...string) Option {
	return configOption(func(c *Config) {
		for _, name := range names {
			c.CompareHeader = append(slices.Clip(c.CompareHeader), http.CanonicalHeaderKey(name))
		}
		slices.Sort(c.CompareHeader)
		c.CompareHeader = slices.Compact(c.CompareHeader)
	})
}

// WithKeyHeader sets the header field that Idempotent reads the key from. Defaults to Idempotency-Key.
func WithKeyHeader(name string) Option {
	return configOption(func(c *Config) { c.KeyHeader = name })
}
