package script

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// endMemory is how long Redis remembers an end that the record does not tell. A repetition within that time gets the true
// answer. It is also leastMemory in lua/once/finish.lua.
const endMemory = 15 * time.Second

// The answers of the scripts that end an attempt.
const (
	Stale     = int64(0) // a later attempt has ended in the record, or the record was resolved: nothing was written
	Recorded  = int64(1) // the end is recorded
	Recreated = int64(2) // the end is recorded, in a new record: the one of the attempt was lost or overwritten
)

// Complete records that the attempt has taken effect, with a value. A value longer than Terms.MaxValue is not recorded. The
// token and the number are those of the attempt. It returns Stale, Recorded or Recreated. While another attempt is running, it
// returns an error that is transport.ErrNotYet for [errors.Is].
func (s Once) Complete(ctx context.Context, h *Hold, token int64, number int, value []byte) (int64, error) {
	value, omitted := termsOf(h).recorded(value)
	return s.finish(ctx, onceCompleteScript, h, token, number, value, omitted)
}

// Hold records that the outcome of the attempt is unknown, with a reason. It returns what Complete returns.
func (s Once) Hold(ctx context.Context, h *Hold, token int64, number int, reason string) (int64, error) {
	return s.finish(ctx, onceHoldScript, h, token, number, []byte(reason), "")
}

// finish runs a script that uses lua/once/finish.lua. The content is the value or the reason.
func (s Once) finish(
	ctx context.Context, script *transport.Script, h *Hold, token int64, number int, content []byte, omitted any,
) (int64, error) {
	t := termsOf(h)
	args := []any{
		h.ID, Milliseconds(t.Retention), token, s.PublishVerbArg, h.Keys.Channel, text(content), endMemoryArg(h),
		omitted, "", "", t.Instance, t.Label,
	}
	if script == onceCompleteScript {
		args[8] = text(t.Fingerprint)
	}
	if number != 1 {
		args[9] = number
	}
	if t.Group.Key != "" {
		args = append(args, Counted(t.content(len(content))))
	}
	c := transport.NewCommand(script, t.Group.withGroup(h.Keys.Lock, h.Released, h.Keys.EndMarks()), shorten(args)...)
	c.Ack = h.Ack
	if err := h.sendRelease(ctx, s.Exec, c); err != nil {
		return 0, err
	}
	if d := newDecoder(c.Reply); d.Len() == 3 {
		d.Int(0, 0)
		by := WaitState{HolderTTL: d.TTL(), Holder: d.Text()}
		if err := d.End(); err != nil {
			return 0, err
		}
		return 0, &overtaken{by}
	}
	return s.readEnd(c.Reply)
}

// endMemoryArg returns for how many ms Redis remembers an end that it records, as an argument of scripts. It returns "" if the
// record is memory enough: no request of the attempt is without an answer, and the record outlasts the repetitions.
func endMemoryArg(h *Hold) any {
	switch {
	case h.Unanswered > 0:
		return abandonMemoryArg
	case h.ReleasesUnanswered > 0, termsOf(h).Retention < endMemory:
		return Milliseconds(endMemory)
	}
	return ""
}

// recorded returns the value as it is recorded, and whether it is omitted, as an argument of scripts.
func (t *Terms) recorded(value []byte) (kept []byte, omitted any) {
	if len(value) > t.MaxValue {
		return nil, 1
	}
	return value, ""
}

// readEnd returns the answer in the reply of a script that ends an attempt. It calls PublishRefused if Redis has refused to
// announce the end.
func (s Once) readEnd(reply any) (int64, error) {
	d := newDecoder(reply)
	result := d.Int(Stale, Recreated)
	_, unpublished := reply.([]any)
	if unpublished {
		d.Int(0, 0)
	}
	if err := d.End(); err != nil {
		return 0, err
	}
	if unpublished {
		s.PublishRefused()
	}
	return result, nil
}

// Release implements [Strategy]. It discards an attempt that no caller was given. It leaves any other attempt as it
// is and returns true, even if the lease was lost or the client is closed. Why: the run may have taken effect. Its outcome on
// expiry decides when the lease has expired.
func (s Once) Release(ctx context.Context, h *Hold, what ReleaseReason) (bool, error) {
	if what != NeverHeld {
		return true, nil
	}
	return s.Discard(ctx, h, what)
}

// Discard ends an attempt without an outcome, so that the next attempt may begin. It returns false if the attempt is not
// running in the record any more.
//
// Redis always remembers it. Why: the next attempt overwrites what the record could tell.
func (s Once) Discard(ctx context.Context, h *Hold, what ReleaseReason) (bool, error) {
	found, missing := s.releaseMemories(h, what)
	found, missing = atLeast(endMemory, found), atLeast(endMemory, missing)
	abandoned := 0
	if what == NeverHeld {
		abandoned = 1
	}
	args := []any{h.ID, found, abandoned, s.PublishVerbArg, h.Keys.Channel, missing}
	if termsOf(h).Group.bounded() {
		args = append(args, Counted(termsOf(h).content(0)))
	}
	reply, err := s.Exec.DoWithAck(ctx, h.Ack, onceReleaseScript, termsOf(h).Group.withGroup(h.Keys.Lock, h.Released), args...)
	if err != nil {
		return false, err
	}
	result, err := s.readEnd(reply)
	return result != Stale, err
}

// Seen is what an operator saw of a record: an action applies to that and nothing else.
type Seen struct {
	State    string // as in [Record]
	Attempt  int    // counts if there was no state
	Token    int64
	Ended    time.Time // zero if the record had no end
	OnExpiry string    // as in [Record]
}

// end returns the end as an argument of scripts.
func (s Seen) end() int64 {
	if us := s.Ended.UnixMicro(); us > 0 && us <= TokenLimit {
		return us
	}
	return 0
}

// Resolve records that the run has taken effect, on behalf of an operator. It returns a refusal if the record has changed since
// the operator saw it, if a run has completed before, or if an attempt is running. If it returns nil for both, the record is
// completed.
func (s Once) Resolve(ctx context.Context, h *Hold, g Group, seen Seen, value []byte) (refused *Refusal, err error) {
	t := termsOf(h)
	grouped := 0
	if t.Grouped {
		grouped = 1
	}
	value, omitted := t.recorded(value)
	reply, err := s.Exec.DoWithAck(ctx, h.Ack, onceResolveScript, g.withGroup(h.Keys.Lock, h.Released, h.Keys.EndMarks()),
		h.ID, Milliseconds(t.Retention), abandonMemoryArg, s.PublishVerbArg, h.Keys.Channel,
		value, omitted, t.Fingerprint, grouped, seen.State, seen.Token, seen.end(), seen.Attempt, seen.OnExpiry,
		Counted(t.content(len(value))))
	if err != nil {
		return nil, err
	}
	d := newDecoder(reply)
	switch status := d.Int(-5, 1); {
	case status == -5:
		refused = &Refusal{Kind: Changed, Record: decodeRecord(&d)}
	case status == -4:
		refused = &Refusal{Kind: Completed, Record: decodeRecord(&d)}
	case status == 0:
		refused = &Refusal{Kind: InProgress, RetryAfter: d.TTL()}
	case status == 1:
		_, err = s.readEnd(reply)
		return nil, err
	default:
		d.Fail()
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	return refused, nil
}

// Forget deletes the record, and takes it out of its group. It returns a refusal if the record has changed since the operator
// saw it, or if an attempt is running, unless evenRunning is true. The key forgot makes it idempotent: a repetition with the
// same key deletes no later record, for AbandonMemory.
func (s Once) Forget(
	ctx context.Context, a transport.Ack, k Keys, g Group, seen Seen, evenRunning bool, forgot string,
) (refused *Refusal, err error) {
	force := 0
	if evenRunning {
		force = 1
	}
	reply, err := s.Exec.DoWithAck(ctx, a, onceForgetScript, g.withGroup(k.Lock, forgot, k.EndMarks()),
		abandonMemoryArg, s.PublishVerbArg, k.Channel, seen.State, seen.Token, force, seen.end(), seen.Attempt, seen.OnExpiry)
	if err != nil {
		return nil, err
	}
	d := newDecoder(reply)
	switch d.Int(-2, 1) {
	case -2:
		refused = &Refusal{Kind: InProgress, RetryAfter: d.TTL()}
	case -1:
		refused = &Refusal{Kind: Changed, Record: decodeRecord(&d)}
	default:
		_, err = s.readEnd(reply)
		return nil, err
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	return refused, nil
}
