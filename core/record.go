package core

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/inventory"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// State is the state of a record.
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
	// ProofKey is the key that its [Proof] has, if it has one: Key with the prefix of the client. Only Peek sets it.
	ProofKey string
	// State is the state of the record. The fields below are zero if it is StateNone, except Attempt.
	State State
	// Attempt is the number of the last attempt, from 1. It survives a release, so it counts the attempts, except with
	// [WithQuota]. It is 0, as is Token, if there was no attempt before [Once.Resolve].
	Attempt int
	// Token is the fencing token of that attempt.
	Token int64
	// Value is what a completed run returned, or the value given to [Once.Resolve]. It is nil if Omitted.
	Value []byte
	// Omitted is true if a completed run had a value that was not recorded: larger than [WithMaxValue], or lost with a
	// process that had declared the run completed, see [Attempt.Declare]. A run that called [Complete] and failed has returned
	// none: it has an empty Value, and Omitted is false.
	Omitted bool
	// Fingerprint is the fingerprint of the attempt, see [WithFingerprint].
	Fingerprint []byte
	// Reason is why the outcome is unknown; it may be empty.
	Reason string
	// Note is the [WithNote] of the attempt.
	Note string
	// Instance is the process that began the attempt: the [WithInstance] of its client. A text of more than 64 bytes lacks its
	// middle, because Redis would need three times the memory for the record.
	Instance string
	// Label is the [WithLabel] of the attempt: the route, job or task type of a guard.
	Label string
	// Began and Ended are by the server's clock; Ended is zero while the run has no end.
	Began, Ended time.Time
	// Lease is the rest of a running attempt's lease.
	Lease time.Duration
	// OnExpiry is the state that the record of a running attempt gets when the lease has expired: [StateAbandoned], or what
	// [Attempt.Declare] or [HoldFailures] has set. It is StateNone in all other states.
	OnExpiry State
	// Retention is how long the record will be kept if nothing happens.
	Retention time.Duration
}

// newRecord returns what Redis has stored for a key. It copies values, since callers with one question share the answer.
func newRecord(key string, s script.Record) Record {
	r := Record{
		Key: key, State: stateOf(s.State), Attempt: s.Attempt, Token: s.Token, Value: bytes.Clone(s.Value), Omitted: s.Omitted,
		Fingerprint: bytes.Clone(s.Fingerprint), Reason: s.Reason, Note: s.Note,
		Instance: s.Instance, Label: s.Label, Began: s.Began, Ended: s.Ended, Lease: s.Lease, Retention: s.Retention,
		OnExpiry: stateOf(s.OnExpiry),
	}
	return r
}

// stateOf returns the state that a record has for callers.
func stateOf(s string) State {
	if s == script.ExpiryAllowsRetry {
		return StateAbandoned
	}
	return State(s)
}

// seen returns what an operator saw of the record of this Once, for the scripts.
func (o *Once) seen(r Record) (script.Seen, error) {
	if err := o.check(); err != nil {
		return script.Seen{}, err
	}
	if r.Key != "" && r.Key != o.key {
		return script.Seen{}, invalidOption("once %q: the record that was seen is that of %q", o.key, r.Key)
	}
	s := script.Seen{State: string(r.State), Attempt: r.Attempt, Token: r.Token, Ended: r.Ended, OnExpiry: string(r.OnExpiry)}
	if r.OnExpiry == StateAbandoned {
		s.OnExpiry = script.ExpiryAllowsRetry
	}
	switch r.State {
	case StateAbandoned:
		s.State = script.ExpiryAllowsRetry
	case StateNone, StateRunning, StateUnknown, StateCompleted:
	default:
		return s, invalidOption("once %q: the record that was seen has the state %q: pass what Peek returned", o.key, r.State)
	}
	return s, nil
}

// GroupRecords reads the records of a group, the latest first: the records of a [Once] with [WithGroup] or [WithQuota]
// whose keys have the same text in their first pair of braces as key. It scans nothing, so it is cheap where
// [Client.Records] is not. The answer may be outdated when it arrives, and each record is read by itself. Records
// without state are left out.
func (c *Client) GroupRecords(ctx context.Context, key string) ([]Record, error) {
	if _, err := keysOf(c.prefix, key); err != nil {
		return nil, err
	}
	group, ok := script.GroupKey(c.prefix, key)
	if !ok {
		return nil, fmt.Errorf("%w: %q has no braces to name a group", ErrInvalidName, key)
	}
	names, err := c.groupNames(ctx, key, group)
	if err != nil {
		return nil, err
	}
	slices.Sort(names) // one that was recorded meanwhile lets others be listed twice
	records, err := c.peekAll(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r Record) bool { return r.State == StateNone })
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(b.Began.UnixMicro(), a.Began.UnixMicro()) })
	return records, nil
}

// maxGroup is how many members of a group are read. More are an error: a server that never comes to an end must not use
// up the memory.
const maxGroup = 1_000_000

// groupNames returns the keys of the records of a group.
func (c *Client) groupNames(ctx context.Context, key, group string) (names []string, err error) {
	once := c.Once(key)
	for seen := 0; seen < maxGroup; {
		var read int
		var listed []string
		err := once.ask(ctx, "list records of", func(ctx context.Context) (err error) {
			read, listed, err = once.backend().List(ctx, group, c.prefix, seen)
			return err
		})
		if err != nil {
			return nil, err
		}
		names = append(names, listed...)
		if seen += read; read < script.MaxListed {
			return names, nil
		}
	}
	return nil, errorf("holdfast: list records of once %q: the group has more than %d members", key, maxGroup)
}

// peekAll reads records side by side.
func (c *Client) peekAll(ctx context.Context, names []string) ([]Record, error) {
	return inventory.ReadAll(ctx, names, func(name string) (Record, error) { return c.Once(name).Peek(ctx) })
}
