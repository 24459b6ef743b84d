package asynqlock

import (
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// The options in this file are for [Once]; [Exclusive] keeps no records and refuses them.

// WithRetention sets how long a record is kept after its run. During that time no second run of its key begins. It has
// to be longer than the time in which a task can come again: the retries of asynq's defaults take 20 days, and a task
// in the archive can be run again for 90. Defaults to 24 h.
func WithRetention(retention time.Duration) Option {
	return record("WithRetention", func(c *config) { c.records.retention = retention })
}

// AtMostOnce allows no second run after a run that failed or crashed, because it is unknown whether that run took
// effect. The task is archived with [core.ErrOutcomeUnknown] until an operator has found out, see [Resolve] and
// [Forget]. If a guard right behind this one refuses the task, the run has done nothing. A handler that knows that it
// has done nothing calls [core.Release], and runs again. One that returns [asynq.RevokeTask] leaves no record.
//
// Defaults to running it again.
func AtMostOnce() Option {
	return record("AtMostOnce", func(c *config) { c.records.policy = core.HoldFailures })
}

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

// WithMaxResult sets how many bytes a recorded result may have, see [SetResult]. A larger one is not recorded, and not
// replayed. Defaults to 64 KiB.
func WithMaxResult(bytes int) Option {
	return record("WithMaxResult", func(c *config) {
		if bytes < 1 {
			c.refuse("WithMaxResult(%d): at least 1 byte is needed", bytes)
		}
		c.records.maxResult = bytes
	})
}

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the record. After that the task is
// acknowledged all the same, and the record is retried in the background. At least 1 ms. Defaults to 5 s.
func WithFinishTimeout(limit time.Duration) Option {
	return record("WithFinishTimeout", func(c *config) {
		c.positive("WithFinishTimeout", limit)
		c.records.finishTimeout = limit
	})
}

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
	return record(option, func(c *config) {
		if c.conflict != conflictRetry && c.conflict != what {
			c.refuse("%s: SkipDuplicates and RejectDuplicates contradict each other", option)
		}
		c.conflict = what
	})
}
