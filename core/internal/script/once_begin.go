package script

import (
	"context"
	"errors"
	"math"
	"time"
)

// Acquire implements [Strategy]: it begins an attempt.
//
// It sends unconfirmed ends of the key first, and nothing else while one has no answer. If an end is told that another attempt is
// running, that is the answer to the begin as well. Why not a begin then: that attempt may have ended before the begin arrives.
func (s Once) Acquire(ctx context.Context, h *Hold, want Wanted) (Result, error) {
	var other *overtaken
	if err := s.Unconfirmed.settle(ctx, h.Keys.Lock); errors.As(err, &other) {
		return Result{WaitState: other.by}, nil
	} else if err != nil {
		return Result{}, err
	}
	result, err := s.begin(ctx, h)
	if result.Granted && s.Unconfirmed.first(h.Keys.Lock) != nil {
		// Another attempt of this client has ended meanwhile, without a lease. Its end comes first, so this one is withdrawn.
		h.Stored = true
		return Result{HoldReleased: true}, nil
	}
	return result, err
}

// begin sends the request for an attempt.
func (s Once) begin(ctx context.Context, h *Hold) (Result, error) {
	tokenKey := s.TokenKeys.Of(h.Keys.Lock)
	reply, err := h.do(ctx, s.Exec, onceBeginScript,
		termsOf(h).Group.withGroup(h.Keys.Lock, tokenKey, h.Released), beginArgs(h)...)
	if s.TokenKeys.learnSlots(err, h.Keys.Lock, tokenKey) {
		return s.begin(ctx, h)
	}
	if err != nil {
		return Result{}, err
	}
	return readBegin(reply)
}

// beginArgs returns the arguments of lua/once/begin.lua.
func beginArgs(h *Hold) []any {
	t := termsOf(h)
	onExpiry := ""
	if t.HoldFailures {
		onExpiry = ExpiryMeansUnknown
	}
	args := []any{
		h.ID, Milliseconds(h.TTL), Milliseconds(max(t.Retention, h.TTL)), tokenMemoryArg,
		onExpiry, text(t.Fingerprint), t.Note, t.Instance, t.Label,
		windowBound(t.Earliest), windowBound(t.Latest),
	}
	if g := t.Group; g.Key != "" {
		args = append(args, Counted(t.content(t.MaxValue)))
		if g.MaxRecords > 0 {
			args = append(args, g.MaxRecords)
		}
	}
	return shorten(args)
}

var tokenMemoryArg any = Milliseconds(tokenMemory)

// text returns bytes as an argument of scripts.
func text(b []byte) any {
	if len(b) == 0 {
		return ""
	}
	return b
}

// shorten returns the arguments without those at the end that are "". The scripts take an absent argument for that.
func shorten(args []any) []any {
	for len(args) > 0 && args[len(args)-1] == "" {
		args = args[:len(args)-1]
	}
	return args
}

// readBegin returns the result for a reply of lua/once/begin.lua.
func readBegin(reply any) (result Result, err error) {
	if _, first := reply.(int64); first {
		token, err := readStatus(reply, 1, TokenLimit)
		return Result{Granted: err == nil, Grant: Grant{Token: token, Attempt: 1, Began: time.UnixMicro(token)}}, err
	}
	d := newDecoder(reply)
	refused := &Refusal{}
	switch status := d.Int(-7, 1); status {
	case 1:
		result.Granted, result.Token = true, d.Token()
		result.Attempt, result.Began = int(d.Int(1, math.MaxInt32)), d.Time()
	case 0:
		result.HolderTTL, result.Holder = d.TTL(), d.Text()
	case -1:
		d.Int(0, 0)
		result.HoldReleased = true
	case -2:
		d.Int(0, 0)
		refused.Kind = fingerprintMismatch
	case -3:
		refused.Kind, refused.Record = OutcomeUnknown, decodeRecord(&d)
	case -4:
		refused.Kind, refused.Record = Completed, decodeRecord(&d)
	case -5:
		refused.Kind, refused.RetryAfter = TooManyRecords, d.TTL()
	case -6:
		refused.Kind, refused.ServerTime = TooEarly, d.Time()
	case -7:
		refused.Kind, refused.ServerTime = TooLate, d.Time()
	}
	if err := d.End(); err != nil {
		return Result{}, err
	}
	if refused.Kind != 0 {
		result.Refused = refused
	}
	return result, nil
}

// windowBound returns a bound of a window as an argument of lua/once/begin.lua: ms since 1970, or "" for the zero time, which is no
// bound. For times that do not fit into milliseconds, it returns one that the clock of no server reaches.
func windowBound(t time.Time) any {
	const never = int64(1) << 40 // s
	switch s := t.Unix(); {
	case t.IsZero():
		return ""
	case s > never:
		return never * 1000
	case s < -never:
		return -never * 1000
	}
	return t.UnixMilli()
}

// Refusal is why an attempt may not begin, a record cannot be resolved or forgotten, or a lock cannot be granted however long its owner
// waits.
type Refusal struct {
	Kind       RefusalKind
	Record     Record        // of Completed, OutcomeUnknown and Changed; zero for other kinds
	RetryAfter time.Duration // of TooManyRecords and InProgress; 0 for other kinds
	ServerTime time.Time     // of TooEarly and TooLate; zero for other kinds
}

// RefusalKind is the reason of a refusal.
type RefusalKind int

// The reasons of refusals. Package core takes every other value for fingerprintMismatch.
const (
	Completed           RefusalKind = iota + 1 // a run has completed before
	OutcomeUnknown                             // a run has an unknown outcome, which has to be resolved first
	InProgress                                 // an attempt is running, so the record cannot be resolved, or forgotten without force
	fingerprintMismatch                        // the record was made for another fingerprint
	TooManyRecords                             // the group has as many records as it may have
	TooEarly                                   // the server's clock has not reached the window
	TooLate                                    // the server's clock is past the window
	Changed                                    // the record is not as the operator saw it
	Upgrade                                    // of a lock: its owner holds it shared, and would wait for itself
)

// Settled returns true if no attempt will begin unless an operator decides so. Then waiting helps no caller of the key.
func (r *Refusal) Settled() bool {
	return r.Kind == Completed || r.Kind == OutcomeUnknown && r.Record.State == "unknown"
}
