package core

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// onceBackend is the protocol of [Once]. An attempt is a hold. Its lease is renewed and waited for like that of a lock. Only
// the state in Redis differs.
type onceBackend struct {
	lockscript.OneRedis
}

// record returns what is to be recorded of the attempt of a hold.
func record(h *lockscript.Hold) *recordConfig { return h.Own.(*recordConfig) }

func (c onceBackend) Acquire(ctx context.Context, h *lockscript.Hold) (lockscript.Result, error) {
	onExpiry := expiryAllowsRetry
	if record(h).policy == HoldFailures {
		onExpiry = expiryMeansUnknown
	}
	args := []any{
		h.ID, lockscript.Milliseconds(h.TTL), lockscript.Milliseconds(record(h).retention), lockscript.Milliseconds(lockscript.TokenMemory), onExpiry,
		record(h).fingerprint, record(h).group.most, bound(record(h).earliest), bound(record(h).latest), record(h).note,
	}
	if g := record(h).group; g.key != "" {
		args = append(args, counted(record(h).content(record(h).maxValue)), g.bytes)
	}
	reply, err := h.Do(ctx, c.Exec, onceBeginScript,
		record(h).group.beginKeys(h.Keys.Lock, h.Keys.Token, h.Released), args...)
	if err != nil {
		return lockscript.Result{}, err
	}
	list, _ := reply.([]any)
	if len(list) > 0 && (list[0] == int64(-3) || list[0] == int64(-4)) {
		found, err := readRecord(h.Name, reply)
		if err != nil {
			return lockscript.Result{}, err
		}
		if list[0] == int64(-4) {
			return lockscript.Result{Refused: &CompletedError{Record: found}}, nil
		}
		return lockscript.Result{Refused: &OutcomeUnknownError{Record: found}}, nil
	}
	numbers, err := lockscript.Integers(reply, 2, 4)
	switch {
	case err != nil:
		return lockscript.Result{}, err
	case numbers[0] == 1:
		return lockscript.Result{
			Granted: true, Token: numbers[1], Attempt: int(numbers[2]), Began: time.UnixMicro(numbers[3]),
		}, nil
	case numbers[0] == 0:
		return lockscript.Result{WaitState: lockscript.WaitState{HolderTTL: time.Duration(numbers[1]) * time.Millisecond}}, nil
	case numbers[0] == -2:
		return lockscript.Result{Refused: fmt.Errorf("%w: once %q", ErrFingerprintMismatch, h.Name)}, nil
	case numbers[0] == -5 || numbers[0] == -8:
		return lockscript.Result{Refused: &TooManyKeysError{
			Key: h.Name, Bytes: numbers[0] == -8, RetryAfter: time.Duration(numbers[1]) * time.Millisecond,
		}}, nil
	case numbers[0] == -6 || numbers[0] == -7:
		return lockscript.Result{Refused: &OutsideWindowError{
			Key: h.Name, Early: numbers[0] == -6, ServerTime: time.UnixMicro(numbers[1]),
		}}, nil
	default:
		return lockscript.Result{HoldReleased: true}, nil
	}
}

// release discards an attempt that no caller was given. It leaves any other attempt as it is, even if its lease was lost or
// the client is closed. Why: the run may have taken effect. Its failure policy decides when the lease has expired.
func (c onceBackend) Release(ctx context.Context, h *lockscript.Hold, what lockscript.ReleaseReason) (bool, error) {
	if what != lockscript.NeverHeld {
		return true, nil
	}
	return c.discard(ctx, h, what)
}

// discard ends an attempt without an outcome.
func (c onceBackend) discard(ctx context.Context, h *lockscript.Hold, what lockscript.ReleaseReason) (bool, error) {
	found, missing := h.ReleaseMemories(what)
	abandoned := 0
	if what == lockscript.NeverHeld {
		abandoned = 1
	}
	args := []any{h.ID, found, abandoned, c.PublishVerb, h.Keys.Channel, missing}
	if record(h).group.bounded() {
		args = append(args, counted(record(h).content(0)))
	}
	result, err := c.end(ctx, h.Ack, onceReleaseScript, endKeys(h), args...)
	return result != stale, err
}

// endKeys returns the keys that the end of an attempt writes.
func endKeys(h *lockscript.Hold) []string { return record(h).group.withGroup(h.Keys.Lock, h.Released) }

// bound is an end of a window in ms since 1970, for lua/once_begin.lua: "" for the zero time, which is no bound. Times
// that milliseconds cannot express are cut to some that no server's clock reaches.
func bound(t time.Time) any {
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
	stale     = int64(0)
	recorded  = int64(1)
	recreated = int64(2)
)

// end runs a script that ends an attempt. It warns if the end could not be announced.
func (c onceBackend) end(ctx context.Context, a transport.Ack, s *transport.Script, keys []string, args ...any) (int64, error) {
	reply, err := c.Exec.DoWithAck(ctx, a, s, keys, args...)
	if err != nil {
		return 0, err
	}
	return c.readEnd(reply)
}

// readEnd reads the reply of a script that ends an attempt.
func (c onceBackend) readEnd(reply any) (int64, error) {
	list, err := lockscript.Integers(reply, 2)
	if err != nil {
		return 0, err
	}
	if list[0] != stale && list[1] == 0 {
		c.PublishRefused()
	}
	return list[0], nil
}

// complete records that the attempt took effect.
func (c onceBackend) complete(ctx context.Context, h *lockscript.Hold, token int64, number int, value []byte) (int64, error) {
	outcome, size := record(h).outcome(value)
	return c.finish(ctx, onceCompleteScript, h, token, number, append(outcome, size)...)
}

// outcome returns the arguments of a completed run, see lua/once_finish_common.lua, and the bytes that its record counts.
func (r *recordConfig) outcome(value []byte) (args []any, size int64) {
	omitted := 0
	if len(value) > r.maxValue {
		value, omitted = nil, 1
	}
	return []any{value, omitted, r.fingerprint}, counted(r.content(len(value)))
}

// resolve records that the run has taken effect. It returns refused if the record does not allow that.
func (c onceBackend) resolve(ctx context.Context, h *lockscript.Hold, g recordGroup, value []byte) (refused, err error) {
	lists := 0
	if record(h).grouped {
		lists = 1
	}
	outcome, size := record(h).outcome(value)
	reply, err := c.Exec.DoWithAck(ctx, h.Ack, onceResolveScript, g.withGroup(h.Keys.Lock, h.Released),
		slices.Concat(c.finishArgs(h, lockscript.AbandonMemoryArg), outcome, []any{lists, size})...)
	if err != nil {
		return nil, err
	}
	if list, _ := reply.([]any); len(list) > 0 && list[0] == int64(-4) {
		found, err := readRecord(h.Name, reply)
		return &CompletedError{Record: found}, err
	}
	numbers, err := lockscript.Integers(reply, 2)
	if err == nil && numbers[0] == 0 {
		left := time.Duration(numbers[1]) * time.Millisecond
		return &InProgressError{Key: h.Name, RetryAfter: left}, nil
	}
	_, err = c.readEnd(reply)
	return nil, err
}

// hold records that the outcome is unknown.
func (c onceBackend) hold(ctx context.Context, h *lockscript.Hold, token int64, number int, reason string) (int64, error) {
	return c.finish(ctx, onceHoldScript, h, token, number, reason, counted(record(h).content(len(reason))))
}

func (c onceBackend) finish(
	ctx context.Context, s *transport.Script, h *lockscript.Hold, token int64, number int, more ...any,
) (int64, error) {
	memory, _ := h.ReleaseMemories(lockscript.HeldByCaller)
	args := slices.Concat(c.finishArgs(h, memory), []any{token, number}, more)
	return c.end(ctx, h.Ack, s, endKeys(h), args...)
}

// finishArgs returns the first arguments of all scripts that use lua/once_finish_common.lua.
func (c onceBackend) finishArgs(h *lockscript.Hold, memory any) []any {
	return []any{h.ID, lockscript.Milliseconds(record(h).retention), memory, c.PublishVerb, h.Keys.Channel}
}

// setOutcomeOnExpiry sets what the attempt counts as when its lease has expired. It returns false if another attempt has
// followed.
func (c onceBackend) setOutcomeOnExpiry(ctx context.Context, h *lockscript.Hold, what string) (bool, error) {
	reply, err := c.Exec.DoWithAck(ctx, h.Ack, onceDeclareScript, []string{h.Keys.Lock}, h.ID, what)
	return reply == int64(1), err
}

func (c onceBackend) Renew(ctx context.Context, h *lockscript.Hold, ttl time.Duration) (bool, error) {
	reply, err := c.Exec.DoWithAck(ctx, h.Ack, onceRenewScript, []string{h.Keys.Lock}, onceRenewArgs(h, ttl)...)
	return reply == int64(1), err
}

func (c onceBackend) RenewAll(renewals []*lockscript.Renewal) {
	calls := make([]*transport.Command, 0, 2*len(renewals))
	for _, r := range renewals {
		c := transport.NewCommand(onceRenewScript, []string{r.Hold.Keys.Lock}, onceRenewArgs(r.Hold, r.Hold.TTL)...)
		c.Ack = r.Hold.Ack
		c.OnSend = func() { r.Sent.Store(true) }
		c.Done = func(c *transport.Command) { r.Done(c.SentAt, c.Reply == int64(1), c.Err) }
		if calls = append(calls, c); record(r.Hold).group.key != "" {
			calls = append(calls, enlistCommand(r.Hold))
		}
	}
	c.Exec.SubmitRenewals(calls)
}

// enlistCommand extends the membership of a running record in its group, behind a renewal. If it fails, the next renewal
// repeats it. Membership lasts for a whole retention, or a TTL if that is longer.
func enlistCommand(h *lockscript.Hold) *transport.Command {
	c := transport.NewCommand(onceEnlistScript, record(h).group.withGroup(h.Keys.Lock), h.ID,
		counted(record(h).content(record(h).maxValue)))
	c.Done = func(*transport.Command) {}
	return c
}

// onceRenewArgs returns the arguments of lua/once_renew.lua.
func onceRenewArgs(h *lockscript.Hold, ttl time.Duration) []any {
	return []any{h.ID, lockscript.Milliseconds(ttl), lockscript.Milliseconds(record(h).retention)}
}
