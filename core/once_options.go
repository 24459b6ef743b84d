package core

import (
	"bytes"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// OnceOption configures a [Once]. Every [LockOption] is one too: [WithTTL], [WithFixedTTL] and [WithMaxHold] apply to
// the lease of a run, [WithWait] to waiting for another run, [WithReplicaAck] to all writes. Defaults come from the
// client, but WithWait of the client is for its locks: a call without one of its own does not wait. [WithOwner] and [WithMinHold] have no meaning here and
// are refused. The methods report an invalid value as [ErrInvalidOption].
type OnceOption interface {
	seal.Option
	applyOnce(*onceConfig)
}

const (
	defaultRetention = 24 * time.Hour
	defaultMaxValue  = 1 << 20
	maxMaxValue      = 256 << 20
	maxFingerprint   = 256
	maxNote          = 256
	maxLabel         = 256
)

// FailurePolicy says what a failed run leaves: one that returned an error, panicked, or crashed while its lease
// expired. In general it is unknown whether a failed run took effect.
type FailurePolicy int

const (
	// RetryFailures allows the next call to run again. It is the zero value. Use it if a failed run has done nothing,
	// or may be repeated.
	RetryFailures FailurePolicy = iota
	// HoldFailures allows no further run. All calls get [ErrOutcomeUnknown] until an operator has found out and calls
	// [Once.Resolve] or [Once.Forget], or until the record expires. Use it if a second run costs more than none.
	HoldFailures
)

// onceConfig holds the effective options of a Once.
type onceConfig struct {
	lock   lockConfig // of the lease
	record script.Terms
	encode func(any) ([]byte, error) // of OnceValue; nil for JSON
	decode func([]byte, any) error
	proof  Proof // nil for none
}

func newOnceConfig(client lockConfig, opts []OnceOption) onceConfig {
	c := onceConfig{lock: client, record: script.Terms{Retention: defaultRetention, MaxValue: defaultMaxValue}}
	c.lock.minHold, c.lock.owner, c.lock.wait = 0, "", 0
	for _, opt := range opts {
		if opt != nil {
			opt.applyOnce(&c)
		}
	}
	if c.lock.err == nil && c.proof != nil && c.proof.OnlyEffect() {
		c.record.HoldFailures = false
	}
	return c
}

// checkOnceOptions returns the error for which a Once with these options would be refused.
func checkOnceOptions(all []seal.Option) error {
	opts := make([]OnceOption, len(all))
	for i, o := range all {
		opts[i] = o.(OnceOption)
	}
	c := newOnceConfig(lockConfig{ttl: defaultTTL}, opts)
	return c.check(nil)
}

func (c *onceConfig) check(rdbs []redis.UniversalClient) error {
	switch {
	case c.lock.owner != "":
		c.lock.refuse(invalidOption("WithOwner is for locks: every attempt of a Once has an owner of its own"))
	case c.lock.minHold != 0:
		c.lock.refuse(invalidOption("WithMinHold is for locks: the record of a Once has its WithRetention"))
	}
	return c.lock.check(rdbs)
}

type onceOption struct {
	seal.Mark
	set func(*onceConfig)
}

// newOnceOption names an option, and has its argument for guards that read it.
func newOnceOption(name string, value any, set func(*onceConfig)) OnceOption {
	return &onceOption{seal.Mark{Name: "core." + name, Value: value}, set}
}

func (o *onceOption) applyOnce(c *onceConfig) { o.set(c) }

// CheckLock and CheckOnce are for [seal.CheckOptions] and [seal.CheckOnceOptions].
func (*onceOption) CheckLock(all []seal.Option) error { return checkLockOptions(all) }
func (*onceOption) CheckOnce(all []seal.Option) error { return checkOnceOptions(all) }

// WithRetention sets how long a record lasts after the run completed. No second run begins in that time. If in doubt choose
// a longer one: it costs only memory. It is not the TTL of the lease, which is far shorter. The
// record of a crashed run lasts as long, counted from its last renewal. Whole milliseconds, at least 10 ms, at most
// ten years. Defaults to 24 hours.
func WithRetention(retention time.Duration) OnceOption {
	return newOnceOption("WithRetention", retention, func(c *onceConfig) {
		switch {
		case retention < minTTL || retention > 10*maxTTL:
			c.lock.refuse(invalidOption("WithRetention(%v): %v to %v is allowed%s", retention, minTTL, 10*maxTTL, seal.UnitHint(retention)))
		case retention%time.Millisecond != 0:
			c.lock.refuse(invalidOption("WithRetention(%v): Redis counts in whole milliseconds", retention))
		}
		c.record.Retention = retention
	})
}

// WithFingerprint sets a digest of the request. Another digest under the same key is [ErrFingerprintMismatch] and
// changes nothing. Without one nothing is compared. At most 256 bytes, stored in plain text: take a digest of secret
// data. Nil is none. Defaults to none.
func WithFingerprint(digest []byte) OnceOption {
	digest = bytes.Clone(digest)
	return newOnceOption("WithFingerprint", nil, func(c *onceConfig) {
		if len(digest) > maxFingerprint {
			c.lock.refuse(invalidOption("WithFingerprint: %d bytes, at most %d are allowed", len(digest), maxFingerprint))
		}
		c.record.Fingerprint = digest
	})
}

// WithFailurePolicy sets what a failed run leaves. No run follows one that began with [HoldFailures], whatever its own
// policy. Defaults to [RetryFailures].
func WithFailurePolicy(policy FailurePolicy) OnceOption {
	return newOnceOption("WithFailurePolicy", policy, func(c *onceConfig) {
		if policy != RetryFailures && policy != HoldFailures {
			c.lock.refuse(invalidOption("WithFailurePolicy(%d): unknown", policy))
		}
		c.record.HoldFailures = policy == HoldFailures
	})
}

// WithMaxValue sets how many bytes a recorded value may have. A run with a larger value is recorded as completed
// without the value, and gets [ErrValueTooLarge]. 1 byte to 256 MiB; Redis keeps all values in memory. Defaults to 1
// MiB.
func WithMaxValue(bytes int) OnceOption {
	return newOnceOption("WithMaxValue", bytes, func(c *onceConfig) {
		if bytes < 1 || bytes > maxMaxValue {
			c.lock.refuse(invalidOption("WithMaxValue(%d): 1 to %d bytes are allowed", bytes, maxMaxValue))
		}
		c.record.MaxValue = bytes
	})
}

// WithGroup lists the record in the group of its key: the keys with the same text in their first pair of braces, such
// as "pay:{ada}:1" and "pay:{ada}:2", see [Client.Records]. In a Cluster all records of a group are on one master,
// because the braces choose the slot. Defaults to none.
func WithGroup() OnceOption {
	return newOnceOption("WithGroup", nil, func(c *onceConfig) { c.record.Grouped = true })
}

// WithQuota is [WithGroup], and bounds how many records the group may have at a time. One more is refused with
// [ErrTooManyKeys], so a client that chooses keys cannot fill Redis: the records take at most so many times [WithMaxValue],
// and 1.5 KiB each. Records count if they were written with this option or WithGroup, from their first attempt until they
// expire or are forgotten. [Once.Resolve] of a new key heeds no bound. 0 is none. Defaults to 0.
//
// A first attempt that is released leaves no record. Its number is not kept, and the next attempt is the first again.
// A later attempt has overtaken another one; its record stays after a release, and counts. The fencing tokens of the
// group grow together with the tokens of all locks.
func WithQuota(most int) OnceOption {
	return newOnceOption("WithQuota", nil, func(c *onceConfig) {
		if most < 0 {
			c.lock.refuse(invalidOption("WithQuota(%d): negative", most))
		}
		c.record.Group.MaxRecords, c.record.Grouped = most, c.record.Grouped || most > 0
	})
}

// WithWindow lets an attempt begin only from one time to another, by the server's clock. Outside of it the error is
// [ErrOutsideWindow]. With a retention longer than the window, no second run can begin after the record has expired,
// because the window has ended by then. Only the zero [time.Time] is no bound. A timestamp that was never set, which
// is 1970 in Unix time, is a bound like any other. Defaults to none.
func WithWindow(earliest, latest time.Time) OnceOption {
	return newOnceOption("WithWindow", nil, func(c *onceConfig) {
		if !earliest.IsZero() && !latest.IsZero() && latest.Before(earliest) {
			c.lock.refuse(invalidOption("WithWindow(%v, %v): it ends before it begins", earliest, latest))
		}
		c.record.Earliest, c.record.Latest = earliest, latest
	})
}

// WithNote sets a text for operators that read the record, during the attempt and afterwards: for instance the name of
// the host. At most 256 bytes. Defaults to none.
func WithNote(note string) OnceOption {
	return newOnceOption("WithNote", nil, func(c *onceConfig) {
		if len(note) > maxNote {
			c.lock.refuse(invalidOption("WithNote: %d bytes, at most %d are allowed", len(note), maxNote))
		}
		c.record.Note = note
	})
}

// WithLabel sets the kind of work that the record belongs to: a route, a job or the type of a task. It is for operators who read
// the record, also long after the process has ended. Put no personal data into it, and nothing that differs from one key to the
// next. At most 256 bytes. Guards set it. Defaults to none.
func WithLabel(label string) OnceOption {
	return newOnceOption("WithLabel", nil, func(c *onceConfig) {
		if len(label) > maxLabel {
			c.lock.refuse(invalidOption("WithLabel: %d bytes, at most %d are allowed", len(label), maxLabel))
		}
		c.record.Label = label
	})
}
