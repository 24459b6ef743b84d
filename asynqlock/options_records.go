package asynqlock

import (
	"time"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// The options in this file are for [Once]; [Exclusive] keeps no records and refuses them.

// IgnorePayload lets tasks of one key have different payloads: the first one that runs counts. See [ComparePayload].
//
// Defaults to a rule by the key. If the key identifies the task, the rest of the payload may differ, such as a time of
// sending or a trace ID. Such keys are those of [ByPayload] with fields, [PerPeriod] and [ByTick], even as parts of
// [Keys]. For every other key ([ByTaskID], [ByHeader], [ByType], functions of your own) another payload is a mistake
// of the producer: the task is archived with [core.ErrFingerprintMismatch]. A function of your own may call ByPayload
// with its context; then the rule of ByPayload applies.
func IgnorePayload() Option { return payloadOption("IgnorePayload", payloadIgnored) }

// ComparePayload archives a task if its payload differs from that of the first one that ran with its key, byte for
// byte, whatever the key is made of. The error is [core.ErrFingerprintMismatch]. Defaults to the rule of
// [IgnorePayload].
func ComparePayload() Option { return payloadOption("ComparePayload", payloadCompared) }

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the record. After that the task is
// acknowledged all the same, and the record is retried in the background. At least 1 ms. Defaults to 5 s.
func WithFinishTimeout(limit time.Duration) Option { return guards.WithFinishTimeout(limit) }

// SkipDuplicates acknowledges a task without running it while another one with its key runs. Use it if both ask for
// the same: the task does not run later, even if the other one fails. A second delivery of the same task is deferred
// all the same, because asynq would lose the task together with its worker. Defaults to deferring it.
func SkipDuplicates() Option {
	return onConflict("SkipDuplicates", conflictSkip)
}

// RejectDuplicates archives a task while another one with its key runs. A second delivery of the same task is
// deferred. Defaults to deferring it.
func RejectDuplicates() Option {
	return onConflict("RejectDuplicates", conflictReject)
}

func onConflict(option string, what conflict) Option {
	return newOption(option, func(c *config) {
		if c.conflict != conflictRetry && c.conflict != what {
			c.refuse("%s: SkipDuplicates and RejectDuplicates contradict each other", option)
		}
		c.conflict = what
	})
}
