package core

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// onceBackend is the protocol of [Once]. An attempt is a hold. Its lease is renewed and waited for like that of a lock. Only
// the state in Redis differs.
type onceBackend struct {
	oneRedis
}

func (c onceBackend) acquire(ctx context.Context, h *hold) (acquireResult, error) {
	onExpiry := expiryAllowsRetry
	if h.record.policy == HoldFailures {
		onExpiry = expiryMeansUnknown
	}
	args := []any{
		h.id, milliseconds(h.ttl), milliseconds(h.record.retention), milliseconds(tokenMemory), onExpiry,
		h.record.fingerprint, h.record.group.most, bound(h.record.earliest), bound(h.record.latest), h.record.note,
	}
	if g := h.record.group; g.key != "" {
		args = append(args, counted(h.record.content(h.record.maxValue)), g.bytes)
	}
	reply, err := h.do(ctx, c.server.exec, onceBeginScript,
		h.record.group.beginKeys(h.keys.lock, h.keys.token, h.released), args...)
	if err != nil {
		return acquireResult{}, err
	}
	list, _ := reply.([]any)
	if len(list) > 0 && (list[0] == int64(-3) || list[0] == int64(-4)) {
		record, err := readRecord(h.name, reply)
		if err != nil {
			return acquireResult{}, err
		}
		if list[0] == int64(-4) {
			return acquireResult{refused: &CompletedError{Record: record}}, nil
		}
		return acquireResult{refused: &OutcomeUnknownError{Record: record}}, nil
	}
	numbers, err := integers(reply, 2, 4)
	switch {
	case err != nil:
		return acquireResult{}, err
	case numbers[0] == 1:
		return acquireResult{
			granted: true, token: numbers[1], attempt: int(numbers[2]), began: time.UnixMicro(numbers[3]),
		}, nil
	case numbers[0] == 0:
		return acquireResult{waitState: waitState{holderTTL: time.Duration(numbers[1]) * time.Millisecond}}, nil
	case numbers[0] == -2:
		return acquireResult{refused: fmt.Errorf("%w: once %q", ErrFingerprintMismatch, h.name)}, nil
	case numbers[0] == -5 || numbers[0] == -8:
		return acquireResult{refused: &TooManyKeysError{
			Key: h.name, Bytes: numbers[0] == -8, RetryAfter: time.Duration(numbers[1]) * time.Millisecond,
		}}, nil
	case numbers[0] == -6 || numbers[0] == -7:
		return acquireResult{refused: &OutsideWindowError{
			Key: h.name, Early: numbers[0] == -6, ServerTime: time.UnixMicro(numbers[1]),
		}}, nil
	default:
		return acquireResult{holdReleased: true}, nil
	}
}

// release discards an attempt that no caller was given. It leaves any other attempt as it is, even if its lease was lost or
// the client is closed. Why: the run may have taken effect. Its failure policy decides when the lease has expired.
func (c onceBackend) release(ctx context.Context, h *hold, what releaseReason) (bool, error) {
	if what != neverHeld {
		return true, nil
	}
	return c.discard(ctx, h, what)
}

// discard ends an attempt without an outcome.
func (c onceBackend) discard(ctx context.Context, h *hold, what releaseReason) (bool, error) {
	found, missing := h.releaseMemories(what)
	abandoned := 0
	if what == neverHeld {
		abandoned = 1
	}
	args := []any{h.id, found, abandoned, c.server.publishVerb, h.keys.channel, missing}
	if h.record.group.bounded() {
		args = append(args, counted(h.record.content(0)))
	}
	result, err := c.end(ctx, h.ack, onceReleaseScript, h.endKeys(), args...)
	return result != stale, err
}

// endKeys returns the keys that the end of an attempt writes.
func (h *hold) endKeys() []string { return h.record.group.withGroup(h.keys.lock, h.released) }

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
	reply, err := c.server.exec.DoWithAck(ctx, a, s, keys, args...)
	if err != nil {
		return 0, err
	}
	return c.readEnd(reply)
}

// readEnd reads the reply of a script that ends an attempt.
func (c onceBackend) readEnd(reply any) (int64, error) {
	list, err := integers(reply, 2)
	if err != nil {
		return 0, err
	}
	if list[0] != stale && list[1] == 0 {
		c.server.cannotPublish()
	}
	return list[0], nil
}

// complete records that the attempt took effect.
func (c onceBackend) complete(ctx context.Context, h *hold, token int64, number int, value []byte) (int64, error) {
	outcome, size := h.record.outcome(value)
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
func (c onceBackend) resolve(ctx context.Context, h *hold, g recordGroup, value []byte) (refused, err error) {
	lists := 0
	if h.record.grouped {
		lists = 1
	}
	outcome, size := h.record.outcome(value)
	reply, err := c.server.exec.DoWithAck(ctx, h.ack, onceResolveScript, g.withGroup(h.keys.lock, h.released),
		slices.Concat(c.finishArgs(h, abandonMemoryArg), outcome, []any{lists, size})...)
	if err != nil {
		return nil, err
	}
	if list, _ := reply.([]any); len(list) > 0 && list[0] == int64(-4) {
		record, err := readRecord(h.name, reply)
		return &CompletedError{Record: record}, err
	}
	numbers, err := integers(reply, 2)
	if err == nil && numbers[0] == 0 {
		left := time.Duration(numbers[1]) * time.Millisecond
		return &InProgressError{Key: h.name, RetryAfter: left}, nil
	}
	_, err = c.readEnd(reply)
	return nil, err
}

// hold records that the outcome is unknown.
func (c onceBackend) hold(ctx context.Context, h *hold, token int64, number int, reason string) (int64, error) {
	return c.finish(ctx, onceHoldScript, h, token, number, reason, counted(h.record.content(len(reason))))
}

func (c onceBackend) finish(
	ctx context.Context, s *transport.Script, h *hold, token int64, number int, more ...any,
) (int64, error) {
	memory, _ := h.releaseMemories(heldByCaller)
	args := slices.Concat(c.finishArgs(h, memory), []any{token, number}, more)
	return c.end(ctx, h.ack, s, h.endKeys(), args...)
}

// finishArgs returns the first arguments of all scripts that use lua/once_finish_common.lua.
func (c onceBackend) finishArgs(h *hold, memory any) []any {
	return []any{h.id, milliseconds(h.record.retention), memory, c.server.publishVerb, h.keys.channel}
}

// setOutcomeOnExpiry sets what the attempt counts as when its lease has expired. It returns false if another attempt has
// followed.
func (c onceBackend) setOutcomeOnExpiry(ctx context.Context, h *hold, what string) (bool, error) {
	reply, err := c.server.exec.DoWithAck(ctx, h.ack, onceDeclareScript, []string{h.keys.lock}, h.id, what)
	return reply == int64(1), err
}

func (c onceBackend) renew(ctx context.Context, h *hold, ttl time.Duration) (bool, error) {
	reply, err := c.server.exec.DoWithAck(ctx, h.ack, onceRenewScript, []string{h.keys.lock}, h.onceRenewArgs(ttl)...)
	return reply == int64(1), err
}

func (c onceBackend) RenewAll(renewals []*renewal) {
	calls := make([]*transport.Command, 0, 2*len(renewals))
	for _, r := range renewals {
		c := transport.NewCommand(onceRenewScript, []string{r.Hold.keys.lock}, r.Hold.onceRenewArgs(r.Hold.ttl)...)
		c.Ack = r.Hold.ack
		c.OnSend = func() { r.Sent.Store(true) }
		c.Done = func(c *transport.Command) { r.Done(c.SentAt, c.Reply == int64(1), c.Err) }
		if calls = append(calls, c); r.Hold.record.group.key != "" {
			calls = append(calls, r.Hold.enlistCommand())
		}
	}
	c.server.exec.SubmitRenewals(calls)
}

// enlistCommand extends the membership of a running record in its group, behind a renewal. If it fails, the next renewal
// repeats it. Membership lasts for a whole retention, or a TTL if that is longer.
func (h *hold) enlistCommand() *transport.Command {
	c := transport.NewCommand(onceEnlistScript, h.record.group.withGroup(h.keys.lock), h.id,
		counted(h.record.content(h.record.maxValue)))
	c.Done = func(*transport.Command) {}
	return c
}

// onceRenewArgs returns the arguments of lua/once_renew.lua.
func (h *hold) onceRenewArgs(ttl time.Duration) []any {
	return []any{h.id, milliseconds(ttl), milliseconds(h.record.retention)}
}

func (onceBackend) queued() *queuedLock { return nil }
