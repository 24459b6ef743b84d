package middleware

import (
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// The options in this file are for Once and Idempotent; Exclusive keeps no records and refuses them.

// WithRetention sets how long a record is kept after its run: for so long, no second request of its key runs.
// Defaults to 24 hours.
func WithRetention(retention time.Duration) Option {
	return func(c *Config) { c.Retention, c.RetentionUntil = retention, nil }
}

// WithRetentionUntil sets until when a record is kept, as a function of the time at which its request begins: until
// midnight, for one order a day. A refused request is told to come back then. It may be called by several goroutines at
// once. Defaults to none: [WithRetention] holds.
func WithRetentionUntil(until func(now time.Time) time.Time) Option {
	return func(c *Config) { c.RetentionUntil = until }
}

// WithFailurePolicy sets what a failed run leaves: one that answered 5xx, panicked, returned without an answer because its
// context was over, or was not heard of any more. With [core.RetryFailures] the next request runs; with
// [core.HoldFailures] all get 409 outcome-unknown until an operator has found out and calls Resolve or Forget of the
// guard's [Ledger]. Defaults to core.RetryFailures.
func WithFailurePolicy(policy core.FailurePolicy) Option {
	return func(c *Config) { c.FailurePolicy = policy }
}

// WithCompletion sets who judges how a handler ended, unless the handler has done so itself with [Complete], [Release]
// or [Hold]. It sees the body, up to [WithRecordLimit]. It is not asked about what a guard further in has refused. [Auto]
// leaves it to the usual judgement: 2xx and 3xx completed; 5xx, 499, panics, reported errors and no answer by the
// failure policy; 401, 403, 407, 408, 409, 421, 423, 425 and 429 released; other 4xx released by Once and completed by
// Idempotent. Defaults to that.
func WithCompletion(judge func(Outcome) Disposition) Option {
	return func(c *Config) { c.Completion = judge }
}

// WithDetachedContext keeps the end of the request's context from the handler: work that should not be cut in half goes
// on when the client leaves. A lost lease still ends it. Defaults to passing it on.
func WithDetachedContext() Option {
	return func(c *Config) { c.Detached = true }
}

// WithReplay makes Once answer a second request with the recorded answer of the first, instead of refusing it. Whoever
// can send the key gets that answer, so it has to be joined with the user. Defaults to refusing it with 409; Idempotent
// replays.
func WithReplay() Option {
	return func(c *Config) { c.Replay = true }
}

// WithRecordLimit sets up to how many bytes of body are held back until the record is written, and kept for replays and
// judges. A larger answer is sent as it is written, and not replayed: see [ReplayOmitted]. At most 64 MiB. Defaults to
// 256 KiB.
func WithRecordLimit(bytes int) Option {
	return func(c *Config) { c.RecordLimit = bytes }
}

// WithQuota bounds how many records the keys of one scope may have at a time: a client with ever new keys would fill
// Redis. One more is refused with 429 too-many-keys. Only Idempotent has scopes. 0 is none. Defaults to 0.
func WithQuota(most int) Option {
	return func(c *Config) { c.Quota = most }
}

// WithQuotaBytes bounds how much of Redis's memory the records of one scope may take: a user can fill no more. A request
// with another key is refused with 429 too-many-keys then. A record counts 1.5 KiB and its answer, rounded up by a quarter
// at most; while its request runs, it counts with the largest answer that is recorded, which is the limit of
// [WithRecordLimit] and 64 KiB for the header: 384 KiB by default. So 10 MiB are 26 requests at a time, and some five
// thousand small answers. Only Idempotent has scopes. 0 is none. Defaults to 0.
func WithQuotaBytes(most int64) Option {
	return func(c *Config) { c.QuotaBytes = most }
}

// WithCodec sets what seals recorded answers before they reach Redis, [NewAESGCM] for instance. An answer that it cannot
// open any more is not replayed: the request is refused with 409 already-completed. Defaults to none.
func WithCodec(codec Codec) Option {
	return func(c *Config) { c.Codec = codec }
}

// ReplayOmitted replays status and header of an answer that could not be recorded whole, marked with Idempotency-Replay:
// omitted: one above [WithRecordLimit], with trailers, or cut short. For clients that look at the status alone: to others
// it seems that the answer was empty. Defaults to refusing such a request with 409 already-completed and its Location.
func ReplayOmitted() Option {
	return func(c *Config) { c.ReplayOmitted = true }
}

// LateAnswers is for frameworks that answer what their handlers return only after the guard has returned, through the
// writer that the handler had. A run whose handler has written nothing stays in progress until its request has ended, and
// what is written until then counts: see [Run.FinishLate]. Defaults to that for Echo only; an empty answer of others is
// recorded before the client gets it.
func LateAnswers() Option {
	return func(c *Config) { c.LateAnswers = true }
}

// WithReplayHeader sets the header field that marks a replay with "true". Defaults to Idempotency-Replayed.
func WithReplayHeader(name string) Option {
	return func(c *Config) { c.ReplayHeader = name }
}

// WithFingerprint sets what of a request is compared with that of an earlier one with the same key, beside its operation:
// method, host of the route, and path as it came in and behind [net/http.StripPrefix]. Another one is refused with 422.
// Nil is all of it: query, content type and body, of a multipart one its parts. A body that is larger than
// [WithBodyLimit] cannot be compared and is refused with 413. Once compares nothing without this option. Defaults to nil
// for Idempotent.
func WithFingerprint(of func(Payload) []byte) Option {
	return func(c *Config) { c.Compare, c.StrictBody, c.Fingerprint = true, true, of }
}

// WithKeyHeader sets the header field that Idempotent reads the key from. Defaults to Idempotency-Key.
func WithKeyHeader(name string) Option {
	return func(c *Config) { c.KeyHeader = name }
}

// StrictKey refuses keys without the quotes of a structured field (RFC 9651). Defaults to accepting "k" and k, which
// are the same key.
func StrictKey() Option {
	return func(c *Config) { c.StrictKey = true }
}

// WithShortestKey sets how many characters an Idempotency-Key has at least. Defaults to 1.
func WithShortestKey(characters int) Option {
	return func(c *Config) { c.ShortestKey = characters }
}
