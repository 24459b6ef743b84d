package core

import "time"

// Outcome is how the begin of a [Once] or the end of an attempt went.
type Outcome string

// The outcomes of a begin.
const (
	OutcomeBegun      Outcome = "begun"       // the attempt runs
	OutcomeReplayed   Outcome = "replayed"    // an earlier run had completed, [ErrCompleted]
	OutcomeInProgress Outcome = "in-progress" // another attempt is running, [ErrInProgress]
	OutcomeMismatch   Outcome = "mismatch"    // the record has another fingerprint, [ErrFingerprintMismatch]
	OutcomeUnknown    Outcome = "unknown"     // that of an earlier run is unknown, [ErrOutcomeUnknown]
	OutcomeRefused    Outcome = "refused"     // by a quota or a window, [ErrTooManyKeys] and [ErrOutsideWindow]
	OutcomeFailed     Outcome = "failed"      // Redis did not decide: it is unavailable, or the context ended first
)

// The outcomes of the end of an attempt.
const (
	OutcomeCompleted   Outcome = "completed"   // recorded by [Attempt.Complete]
	OutcomeReleased    Outcome = "released"    // by [Attempt.Release]
	OutcomeWithdrawn   Outcome = "withdrawn"   // by a guard that has not run anything
	OutcomeHeld        Outcome = "held"        // recorded as unknown by [Attempt.Hold]
	OutcomeStale       Outcome = "stale"       // another attempt has begun, or an operator has decided, [ErrStale]
	OutcomeUnconfirmed Outcome = "unconfirmed" // Redis has not answered; the client tries further
)

// BeginStart describes a call of [Once.Begin].
type BeginStart struct {
	Key string
}

// BeginEnd describes the result of a call of [Once.Begin].
type BeginEnd struct {
	Key     string
	Outcome Outcome
	// Attempt is the number of the attempt, and Token its fencing token; 0 unless it may run.
	Attempt int
	Token   int64
	// TTL is that of the attempt's lease; 0 unless it may run.
	TTL time.Duration
	// Contended is true if another attempt was running, or other callers waited before this one.
	Contended bool
	// Waited is the time from the call to its return.
	Waited time.Duration
	// Asked counts the requests sent to Redis.
	Asked int
	// Holder is the attempt that was running at the last answer, and HolderInstance its instance, as in [Wait]. Both are
	// empty if the attempt may run.
	Holder, HolderInstance string
	// Err is what the call returned.
	Err error
}

// AttemptEnd describes how an attempt ended.
type AttemptEnd struct {
	Key     string
	Outcome Outcome
	Attempt int
	Token   int64
	// State is what was to be recorded: [StateCompleted], [StateUnknown], or [StateNone] after a release.
	State State
	// Recreated says that Redis had lost the record before the attempt was recorded, by an eviction or [Once.Forget], or that
	// a later attempt had begun and took no effect.
	// The attempt may have overlapped another one.
	Recreated bool
	// LeaseLost is true if the lease had ended before the attempt. Then Lost was called for it.
	LeaseLost bool
	// Held is the time since the key was claimed.
	Held time.Duration
	// Err is what the call returned.
	Err error
}
