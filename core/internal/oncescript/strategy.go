package oncescript

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Strategy is the [lockscript.Strategy] of Once. An attempt is a hold: its lease is renewed and waited for like that of a
// lock. Only the state in Redis differs. The field Own of each hold must be its *[Terms].
type Strategy struct {
	lockscript.OneRedis
}

// What a running attempt counts as when its lease has expired: outcome_on_expiry in lua/common.lua.
const (
	ExpiryAllowsRetry    = "retry"     // the next attempt may begin
	ExpiryMeansUnknown   = "unknown"   // the outcome is unknown and has to be resolved
	ExpiryMeansCompleted = "completed" // the run has completed, without a value
)

// termsOf returns the terms of the attempt of a hold. It panics if the hold is not that of an attempt.
func termsOf(h *lockscript.Hold) *Terms { return h.Own.(*Terms) }

// Acquire implements [lockscript.Strategy]: it begins an attempt. The field Refused of the result is a *[Refusal] or nil.
func (s Strategy) Acquire(ctx context.Context, h *lockscript.Hold) (lockscript.Result, error) {
	onExpiry := ExpiryAllowsRetry
	if termsOf(h).HoldFailures {
		onExpiry = ExpiryMeansUnknown
	}
	args := []any{
		h.ID, lockscript.Milliseconds(h.TTL), lockscript.Milliseconds(termsOf(h).Retention), lockscript.Milliseconds(lockscript.TokenMemory), onExpiry,
		termsOf(h).Fingerprint, termsOf(h).Group.MaxRecords, WindowBound(termsOf(h).Earliest), WindowBound(termsOf(h).Latest), termsOf(h).Note,
	}
	if g := termsOf(h).Group; g.Key != "" {
		args = append(args, Counted(termsOf(h).Content(termsOf(h).MaxValue)), g.MaxBytes)
	}
	reply, err := h.Do(ctx, s.Exec, beginScript,
		termsOf(h).Group.beginKeys(h.Keys.Lock, h.Keys.Token, h.Released), args...)
	if err != nil {
		return lockscript.Result{}, err
	}
	if list, _ := reply.([]any); len(list) > 0 && (list[0] == int64(-3) || list[0] == int64(-4)) {
		kind := OutcomeUnknown
		if list[0] == int64(-4) {
			kind = Completed
		}
		return refusedWithRecord(kind, reply)
	}
	numbers, err := lockscript.Integers(reply, 2, 4)
	if err != nil {
		return lockscript.Result{}, err
	}
	return readBegin(numbers), nil
}

// refusedWithRecord returns the result for a refusal whose reply has the record.
func refusedWithRecord(kind RefusalKind, reply any) (lockscript.Result, error) {
	found, err := readRecord(reply)
	if err != nil {
		return lockscript.Result{}, err
	}
	return lockscript.Result{Refused: &Refusal{Kind: kind, Record: found}}, nil
}

// readBegin returns the result for any other reply of lua/begin.lua.
func readBegin(numbers []int64) lockscript.Result {
	refuse := func(r Refusal) lockscript.Result { return lockscript.Result{Refused: &r} }
	left := time.Duration(numbers[1]) * time.Millisecond
	switch numbers[0] {
	case 1:
		return lockscript.Result{
			Granted: true, Token: numbers[1], Attempt: int(numbers[2]), Began: time.UnixMicro(numbers[3]),
		}
	case 0:
		return lockscript.Result{WaitState: lockscript.WaitState{HolderTTL: left}}
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

// Release implements [lockscript.Strategy]. It discards an attempt that no caller was given. It leaves any other attempt as it
// is and returns true, even if the lease was lost or the client is closed. Why: the run may have taken effect. Its outcome on
// expiry decides when the lease has expired.
func (s Strategy) Release(ctx context.Context, h *lockscript.Hold, what lockscript.ReleaseReason) (bool, error) {
	if what != lockscript.NeverHeld {
		return true, nil
	}
	return s.Discard(ctx, h, what)
}

// Discard ends an attempt without an outcome, so that the next attempt may begin. It returns false if the attempt is not
// running in the record any more.
func (s Strategy) Discard(ctx context.Context, h *lockscript.Hold, what lockscript.ReleaseReason) (bool, error) {
	found, missing := h.ReleaseMemories(what)
	abandoned := 0
	if what == lockscript.NeverHeld {
		abandoned = 1
	}
	args := []any{h.ID, found, abandoned, s.PublishVerb, h.Keys.Channel, missing}
	if termsOf(h).Group.bounded() {
		args = append(args, Counted(termsOf(h).Content(0)))
	}
	result, err := s.end(ctx, h.Ack, releaseScript, endKeys(h), args...)
	return result != Stale, err
}

// endKeys returns the keys of a script that ends an attempt.
func endKeys(h *lockscript.Hold) []string { return termsOf(h).Group.withGroup(h.Keys.Lock, h.Released) }

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

// The answers of the scripts that end an attempt.
const (
	Stale     = int64(0) // a later attempt has begun, or the record was resolved: nothing was written
	Recorded  = int64(1) // the end is recorded
	Recreated = int64(2) // the end is recorded, in a new record: the one of the attempt was lost
)

// end runs a script that ends an attempt and returns its answer. It calls PublishRefused if Redis has refused to announce the
// end.
func (s Strategy) end(ctx context.Context, a transport.Ack, script *transport.Script, keys []string, args ...any) (int64, error) {
	reply, err := s.Exec.DoWithAck(ctx, a, script, keys, args...)
	if err != nil {
		return 0, err
	}
	return s.readEnd(reply)
}

// readEnd returns the answer in the reply of a script that ends an attempt.
func (s Strategy) readEnd(reply any) (int64, error) {
	list, err := lockscript.Integers(reply, 2)
	if err != nil {
		return 0, err
	}
	if list[0] != Stale && list[1] == 0 {
		s.PublishRefused()
	}
	return list[0], nil
}

// Complete records that the attempt has taken effect, with a value. A value longer than Terms.MaxValue is not recorded. The
// token and the number are those of the attempt. It returns Stale, Recorded or Recreated.
func (s Strategy) Complete(ctx context.Context, h *lockscript.Hold, token int64, number int, value []byte) (int64, error) {
	outcome, size := termsOf(h).outcome(value)
	return s.finish(ctx, completeScript, h, token, number, append(outcome, size)...)
}

// outcome returns the arguments for a completed run, see lua/finish_common.lua, and how many bytes its record counts.
func (t *Terms) outcome(value []byte) (args []any, size int64) {
	omitted := 0
	if len(value) > t.MaxValue {
		value, omitted = nil, 1
	}
	return []any{value, omitted, t.Fingerprint}, Counted(t.Content(len(value)))
}

// Resolve records that the run has taken effect, on behalf of an operator. It returns a refusal if a run has completed before,
// or if an attempt is running. If it returns nil for both, the record is completed.
func (s Strategy) Resolve(ctx context.Context, h *lockscript.Hold, g Group, value []byte) (refused *Refusal, err error) {
	grouped := 0
	if termsOf(h).Grouped {
		grouped = 1
	}
	outcome, size := termsOf(h).outcome(value)
	reply, err := s.Exec.DoWithAck(ctx, h.Ack, resolveScript, g.withGroup(h.Keys.Lock, h.Released),
		slices.Concat(s.finishArgs(h, lockscript.AbandonMemoryArg), outcome, []any{grouped, size})...)
	if err != nil {
		return nil, err
	}
	if list, _ := reply.([]any); len(list) > 0 && list[0] == int64(-4) {
		found, err := readRecord(reply)
		return &Refusal{Kind: Completed, Record: found}, err
	}
	numbers, err := lockscript.Integers(reply, 2)
	if err == nil && numbers[0] == 0 {
		left := time.Duration(numbers[1]) * time.Millisecond
		return &Refusal{Kind: InProgress, RetryAfter: left}, nil
	}
	_, err = s.readEnd(reply)
	return nil, err
}

// Hold records that the outcome of the attempt is unknown, with a reason. It returns Stale, Recorded or Recreated.
func (s Strategy) Hold(ctx context.Context, h *lockscript.Hold, token int64, number int, reason string) (int64, error) {
	return s.finish(ctx, holdScript, h, token, number, reason, Counted(termsOf(h).Content(len(reason))))
}

// finish runs a script that uses lua/finish_common.lua. The values in more are the arguments of that script alone.
func (s Strategy) finish(
	ctx context.Context, script *transport.Script, h *lockscript.Hold, token int64, number int, more ...any,
) (int64, error) {
	memory, _ := h.ReleaseMemories(lockscript.HeldByCaller)
	args := slices.Concat(s.finishArgs(h, memory), []any{token, number}, more)
	return s.end(ctx, h.Ack, script, endKeys(h), args...)
}

// finishArgs returns the first arguments of all scripts that use lua/finish_common.lua. Redis remembers the end for memory, in
// ms.
func (s Strategy) finishArgs(h *lockscript.Hold, memory any) []any {
	return []any{h.ID, lockscript.Milliseconds(termsOf(h).Retention), memory, s.PublishVerb, h.Keys.Channel}
}

// SetOutcomeOnExpiry sets what the attempt counts as when its lease has expired. The value is one of the constants above. It
// returns false if the attempt is not in the record any more, for instance because another one has begun.
func (s Strategy) SetOutcomeOnExpiry(ctx context.Context, h *lockscript.Hold, what string) (bool, error) {
	reply, err := s.Exec.DoWithAck(ctx, h.Ack, declareScript, []string{h.Keys.Lock}, h.ID, what)
	return reply == int64(1), err
}

// Renew implements [lockscript.Strategy].
func (s Strategy) Renew(ctx context.Context, h *lockscript.Hold, ttl time.Duration) (bool, error) {
	reply, err := s.Exec.DoWithAck(ctx, h.Ack, renewScript, []string{h.Keys.Lock}, renewArgs(h, ttl)...)
	return reply == int64(1), err
}

// RenewAll implements [lockscript.Strategy]. Behind each renewal of a grouped record, it sends the command that extends the
// membership.
func (s Strategy) RenewAll(renewals []*lockscript.Renewal) {
	commands := make([]*transport.Command, 0, 2*len(renewals))
	for _, r := range renewals {
		c := transport.NewCommand(renewScript, []string{r.Hold.Keys.Lock}, renewArgs(r.Hold, r.Hold.TTL)...)
		c.Ack = r.Hold.Ack
		c.OnSend = func() { r.Sent.Store(true) }
		c.Done = func(c *transport.Command) { r.Done(c.SentAt, c.Reply == int64(1), c.Err) }
		if commands = append(commands, c); termsOf(r.Hold).Group.Key != "" {
			commands = append(commands, enlistCommand(r.Hold))
		}
	}
	s.Exec.SubmitRenewals(commands)
}

// enlistCommand returns the command that extends the membership of a running record in its group, for a whole retention, or a
// TTL if that is longer. If it fails, the next renewal repeats it.
func enlistCommand(h *lockscript.Hold) *transport.Command {
	c := transport.NewCommand(enlistScript, termsOf(h).Group.withGroup(h.Keys.Lock), h.ID,
		Counted(termsOf(h).Content(termsOf(h).MaxValue)))
	c.Done = func(*transport.Command) {}
	return c
}

// renewArgs returns the arguments of lua/renew.lua.
func renewArgs(h *lockscript.Hold, ttl time.Duration) []any {
	return []any{h.ID, lockscript.Milliseconds(ttl), lockscript.Milliseconds(termsOf(h).Retention)}
}

// Peek returns the record of a name. Its State is "" if there is none. The keys must be those of Keys.Once.
func (s Strategy) Peek(ctx context.Context, k lockscript.Keys) (Record, error) {
	reply, err := s.Exec.Do(ctx, peekScript, []string{k.Lock})
	if err != nil {
		return Record{}, err
	}
	return readRecord(reply)
}

// Forget deletes the record, and takes it out of its group. The key forgot makes it idempotent: a repetition with the same key
// deletes no later record, for AbandonMemory.
func (s Strategy) Forget(ctx context.Context, a transport.Ack, k lockscript.Keys, g Group, forgot string) error {
	_, err := s.end(ctx, a, forgetScript, g.withGroup(k.Lock, forgot),
		lockscript.Milliseconds(lockscript.AbandonMemory), s.PublishVerb, k.Channel)
	return err
}

// List returns the reply of lua/list.lua: the keys of at most limit records of a group. It leaves out the seen members that
// earlier calls have read.
func (s Strategy) List(ctx context.Context, group string, seen, limit int) (any, error) {
	return s.Exec.Do(ctx, listScript, []string{group}, seen, limit)
}
