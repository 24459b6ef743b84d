package httpguard

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

// WithRetentionUntil is that of package httplock, which documents it.
func WithRetentionUntil(until func(now time.Time) time.Time) Option {
	return configOption(func(c *Config) { c.RetentionUntil = until })
}

// WithFailurePolicy is that of package httplock, which documents it.
func WithFailurePolicy(policy core.FailurePolicy) Option {
	return configOption(func(c *Config) { c.FailurePolicy = policy })
}

// WithCompletion is that of package httplock, which documents it.
func WithCompletion(judge func(Outcome) Disposition) Option {
	return configOption(func(c *Config) { c.Completion = judge })
}

// WithDetachedContext is that of package httplock, which documents it.
func WithDetachedContext() Option {
	return configOption(func(c *Config) { c.Detached = true })
}

// WithReplay is that of package httplock, which documents it.
func WithReplay() Option {
	return configOption(func(c *Config) { c.Replay = true })
}

// WithRecordLimit is that of package httplock, which documents it.
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

// LateAnswers is that of package httplock, which documents it.
func LateAnswers() Option {
	return configOption(func(c *Config) { c.LateAnswers = true })
}

// WithFingerprint is that of package httplock, which documents it.
func WithFingerprint(of func(Payload) []byte) Option {
	return configOption(func(c *Config) { c.Compare, c.StrictBody, c.Fingerprint = true, true, of })
}

// WithComparedHeader is that of package httplock, which documents it.
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
