package core

import (
	"bytes"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/oncescript"
)

// State is what a record says about its key.
type State string

// The states of a record.
const (
	// StateNone is the zero value: nothing is recorded, or the last attempt was released.
	StateNone State = ""
	// StateRunning is an attempt whose lease is valid.
	StateRunning State = "running"
	// StateAbandoned is an attempt whose lease has expired. Another attempt may follow.
	StateAbandoned State = "abandoned"
	// StateUnknown is an attempt with an unknown outcome. No other attempt may follow.
	StateUnknown State = "unknown"
	// StateCompleted is a run that took effect.
	StateCompleted State = "completed"
)

// Record is what Redis remembers of a key of [Once].
type Record struct {
	// Key of the Once.
	Key string
	// State is what the record says. The fields below are zero if it is StateNone, except Attempt.
	State State
	// Attempt is the number of the last attempt, from 1. It survives a release, so it counts the attempts, except with
	// [WithQuota]. It is 0, as is Token, if there was no attempt before [Once.Resolve].
	Attempt int
	// Token is the fencing token of that attempt.
	Token int64
	// Value is what a completed run returned, or the value given to [Once.Resolve]. It is nil if Omitted.
	Value []byte
	// Omitted is true if a completed run had a value that was not recorded: larger than [WithMaxValue], or lost with a
	// process that had declared the run completed, see [Attempt.Declare].
	Omitted bool
	// Fingerprint is that of the attempt, see [WithFingerprint].
	Fingerprint []byte
	// Reason is why the outcome is unknown; it may be empty.
	Reason string
	// Note is the [WithNote] of the attempt.
	Note string
	// Began and Ended are by the server's clock; Ended is zero while the run has no end.
	Began, Ended time.Time
	// Lease is the rest of a running attempt's lease.
	Lease time.Duration
	// Retention is how long the record will be kept if nothing happens.
	Retention time.Duration
}

func (r Record) clone() Record {
	r.Value, r.Fingerprint = bytes.Clone(r.Value), bytes.Clone(r.Fingerprint)
	return r
}

// newRecord returns what Redis has stored for a key.
func newRecord(key string, s oncescript.Record) Record {
	r := Record{
		Key: key, State: State(s.State), Attempt: s.Attempt, Token: s.Token, Value: s.Value, Omitted: s.Omitted,
		Fingerprint: s.Fingerprint, Reason: s.Reason, Note: s.Note, Began: s.Began, Ended: s.Ended,
		Lease: s.Lease, Retention: s.Retention,
	}
	if s.State == "retry" {
		r.State = StateAbandoned
	}
	return r
}
