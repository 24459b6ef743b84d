package oncescript

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// Acquire implements [lockscript.Strategy]: it begins an attempt. The field Refused of the result is a *[Refusal] or nil.
//
// It sends unconfirmed ends of the key first, and nothing else while one has no answer. If an end is told that another attempt is
// running, that is the answer to the begin as well. Why not a begin then: that attempt may have ended before the begin arrives.
func (s Strategy) Acquire(ctx context.Context, h *lockscript.Hold, want lockscript.Wanted) (lockscript.Result, error) {
	var other *overtaken
	if err := s.Unconfirmed.settle(ctx, h.Keys.Lock); errors.As(err, &other) {
		return lockscript.Result{WaitState: other.by}, nil
	} else if err != nil {
		return lockscript.Result{}, err
	}
	result, err := s.begin(ctx, h)
	if result.Granted && s.Unconfirmed.first(h.Keys.Lock) != nil {
		// Another attempt of this client has ended meanwhile, without a lease. Its end comes first, so this one is withdrawn.
		h.Stored = true
		return lockscript.Result{HoldReleased: true}, nil
	}
	return result, err
}

// begin sends the request for an attempt.
func (s Strategy) begin(ctx context.Context, h *lockscript.Hold) (lockscript.Result, error) {
	tokenKey := s.TokenKeys.Of(h.Keys.Lock)
	reply, err := h.Do(ctx, s.Exec, beginScript,
		termsOf(h).Group.withGroup(h.Keys.Lock, tokenKey, h.Released), beginArgs(h)...)
	if s.TokenKeys.LearnSlots(err, h.Keys.Lock, tokenKey) {
		return s.begin(ctx, h)
	}
	if err != nil {
		return lockscript.Result{}, err
	}
	return readBegin(reply)
}

// beginArgs returns the arguments of lua/begin.lua.
func beginArgs(h *lockscript.Hold) []any {
	t := termsOf(h)
	onExpiry := ""
	if t.HoldFailures {
		onExpiry = ExpiryMeansUnknown
	}
	args := []any{
		h.ID, lockscript.Milliseconds(h.TTL), lockscript.Milliseconds(max(t.Retention, h.TTL)), tokenMemoryArg,
		onExpiry, text(t.Fingerprint), t.Note, WindowBound(t.Earliest), WindowBound(t.Latest),
	}
	if g := t.Group; g.Key != "" {
		args = append(args, Counted(t.Content(t.MaxValue)), bound(int64(g.MaxRecords)), bound(g.MaxBytes))
	}
	return shorten(args)
}

var tokenMemoryArg any = lockscript.Milliseconds(lockscript.TokenMemory)

// text returns bytes as an argument of scripts.
func text(b []byte) any {
	if len(b) == 0 {
		return ""
	}
	return b
}

// bound returns the bound of a quota as an argument of scripts, "" for none.
func bound(n int64) any {
	if n == 0 {
		return ""
	}
	return n
}

// shorten returns the arguments without those at the end that are "". The scripts take an absent argument for that.
func shorten(args []any) []any {
	for len(args) > 0 && args[len(args)-1] == "" {
		args = args[:len(args)-1]
	}
	return args
}

// readBegin returns the result for a reply of lua/begin.lua.
func readBegin(reply any) (lockscript.Result, error) {
	if token, ok := reply.(int64); ok {
		return lockscript.Result{Granted: true, Token: token, Attempt: 1, Began: time.UnixMicro(token)}, nil
	}
	if list, _ := reply.([]any); len(list) > 0 && (list[0] == int64(-3) || list[0] == int64(-4)) {
		kind := OutcomeUnknown
		if list[0] == int64(-4) {
			kind = Completed
		}
		return refusedWithRecord(kind, reply)
	}
	numbers, holder, err := lockscript.Refused(reply, 2, 4)
	if err != nil {
		return lockscript.Result{}, err
	}
	return resultOf(numbers, holder), nil
}

// refusedWithRecord returns the result for a refusal whose reply has the record.
func refusedWithRecord(kind RefusalKind, reply any) (lockscript.Result, error) {
	found, err := readRecord(reply)
	if err != nil {
		return lockscript.Result{}, err
	}
	return lockscript.Result{Refused: &Refusal{Kind: kind, Record: found}}, nil
}

// resultOf returns the result for a reply of lua/begin.lua that is a list of integers, and perhaps the attempt that runs.
func resultOf(numbers []int64, holder string) lockscript.Result {
	refuse := func(r Refusal) lockscript.Result { return lockscript.Result{Refused: &r} }
	left := time.Duration(numbers[1]) * time.Millisecond
	switch numbers[0] {
	case 1:
		return lockscript.Result{
			Granted: true, Token: numbers[1], Attempt: int(numbers[2]), Began: time.UnixMicro(numbers[3]),
		}
	case 0:
		return lockscript.Result{WaitState: lockscript.WaitState{Holder: holder, HolderTTL: left}}
	case -2:
		return refuse(Refusal{Kind: fingerprintMismatch})
	case -5:
		return refuse(Refusal{Kind: TooManyRecords, RetryAfter: left})
	case -8:
		return refuse(Refusal{Kind: TooManyBytes, RetryAfter: left})
	case -6:
		return refuse(Refusal{Kind: TooEarly, ServerTime: time.UnixMicro(numbers[1])})
	case -7:
		return refuse(Refusal{Kind: TooLate, ServerTime: time.UnixMicro(numbers[1])})
	}
	return lockscript.Result{HoldReleased: true}
}

// WindowBound returns a bound of a window as an argument of lua/begin.lua: ms since 1970, or "" for the zero time, which is no
// bound. For times that do not fit into milliseconds, it returns one that the clock of no server reaches.
func WindowBound(t time.Time) any {
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
