package core

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// claim is the protocol of [Once]: an attempt is a hold, its lease is renewed and waited for like that of a lock, and
// only what Redis keeps is another thing.
type claim struct {
	oneRedis
}

func (c claim) acquire(ctx context.Context, h *hold) (answer, error) {
	presume := presumeRetry
	if h.record.policy == HoldFailures {
		presume = presumeUnknown
	}
	args := []any{
		h.id, milliseconds(h.ttl), milliseconds(h.record.retention), milliseconds(tokenMemory), presume,
		h.record.fingerprint, h.record.group.most, bound(h.record.earliest), bound(h.record.latest), h.record.note,
	}
	if g := h.record.group; g.key != "" {
		args = append(args, counted(h.record.content(h.record.maxValue)), g.bytes)
	}
	reply, err := c.server.exec.doForHold(ctx, h, onceBeginScript,
		h.record.group.begins(h.keys.lock, h.keys.token, h.released), args...)
	if err != nil {
		return answer{}, err
	}
	list, _ := reply.([]any)
	if len(list) > 0 && (list[0] == int64(-3) || list[0] == int64(-4)) {
		record, err := readRecord(h.name, reply)
		if err != nil {
			return answer{}, err
		}
		if list[0] == int64(-4) {
			return answer{refused: &CompletedError{Record: record}}, nil
		}
		return answer{refused: &OutcomeUnknownError{Record: record}}, nil
	}
	numbers, err := integers(reply, 2, 4)
	switch {
	case err != nil:
		return answer{}, err
	case numbers[0] == 1:
		return answer{
			granted: true, token: numbers[1], attempt: int(numbers[2]), began: time.UnixMicro(numbers[3]),
		}, nil
	case numbers[0] == 0:
		return answer{waitState: waitState{holderTTL: time.Duration(numbers[1]) * time.Millisecond}}, nil
	case numbers[0] == -2:
		return answer{refused: fmt.Errorf("%w: once %q", ErrFingerprintMismatch, h.name)}, nil
	case numbers[0] == -5 || numbers[0] == -8:
		return answer{refused: &TooManyKeysError{
			Key: h.name, Bytes: numbers[0] == -8, RetryAfter: time.Duration(numbers[1]) * time.Millisecond,
		}}, nil
	case numbers[0] == -6 || numbers[0] == -7:
		return answer{refused: &OutsideWindowError{
			Key: h.name, Early: numbers[0] == -6, ServerTime: time.UnixMicro(numbers[1]),
		}}, nil
	default:
		return answer{gone: true}, nil
	}
}

// release takes back an attempt that nobody was given. One that somebody had is left as it is, also when its lease is
// lost or the client is closed: it may have taken effect, and what that means, its failure policy says when its lease is
// over.
func (c claim) release(ctx context.Context, h *hold, what releaseReason) (bool, error) {
	if what != neverHeld {
		return true, nil
	}
	return c.drop(ctx, h, what)
}

// drop ends an attempt that has done nothing.
func (c claim) drop(ctx context.Context, h *hold, what releaseReason) (bool, error) {
	found, missing := h.memories(what)
	abandoned := 0
	if what == neverHeld {
		abandoned = 1
	}
	args := []any{h.id, found, abandoned, c.server.publishVerb, h.keys.channel, missing}
	if h.record.group.bounded() {
		args = append(args, counted(h.record.content(0)))
	}
	result, err := c.end(ctx, h.ack, onceReleaseScript, h.ends(), args...)
	return result != stale, err
}

// ends are the keys that the end of an attempt writes.
func (h *hold) ends() []string { return h.record.group.listed(h.keys.lock, h.released) }

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

// end runs a script that ends an attempt, and minds whether that was announced.
func (c claim) end(ctx context.Context, a ack, s *script, keys []string, args ...any) (int64, error) {
	reply, err := c.server.exec.doWithAck(ctx, a, s, keys, args...)
	if err != nil {
		return 0, err
	}
	return c.ended(reply)
}

// ended reads the answer of such a script.
func (c claim) ended(reply any) (int64, error) {
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
func (c claim) complete(ctx context.Context, h *hold, token int64, number int, value []byte) (int64, error) {
	outcome, size := h.record.outcome(value)
	return c.conclude(ctx, onceCompleteScript, h, token, number, append(outcome, size)...)
}

// outcome is what a completed run has to say, see lua/conclude.lua, and how many bytes its record counts.
func (r *recordConfig) outcome(value []byte) (args []any, size int64) {
	omitted := 0
	if len(value) > r.maxValue {
		value, omitted = nil, 1
	}
	return []any{value, omitted, r.fingerprint}, counted(r.content(len(value)))
}

// resolve records that what the record stands for has been done, or tells why it does not.
func (c claim) resolve(ctx context.Context, h *hold, g recordGroup, value []byte) (refused, err error) {
	lists := 0
	if h.record.grouped {
		lists = 1
	}
	outcome, size := h.record.outcome(value)
	reply, err := c.server.exec.doWithAck(ctx, h.ack, onceResolveScript, g.listed(h.keys.lock, h.released),
		slices.Concat(c.ending(h, abandonMemoryArg), outcome, []any{lists, size})...)
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
	_, err = c.ended(reply)
	return nil, err
}

// hold records that nobody knows whether it did.
func (c claim) hold(ctx context.Context, h *hold, token int64, number int, reason string) (int64, error) {
	return c.conclude(ctx, onceHoldScript, h, token, number, reason, counted(h.record.content(len(reason))))
}

func (c claim) conclude(
	ctx context.Context, s *script, h *hold, token int64, number int, more ...any,
) (int64, error) {
	memory, _ := h.memories(heldByCaller)
	args := slices.Concat(c.ending(h, memory), []any{token, number}, more)
	return c.end(ctx, h.ack, s, h.ends(), args...)
}

// ending are the arguments that all scripts begin with which use lua/conclude.lua.
func (c claim) ending(h *hold, memory any) []any {
	return []any{h.id, milliseconds(h.record.retention), memory, c.server.publishVerb, h.keys.channel}
}

// presume says what the attempt counts as if it is not heard of any more.
func (c claim) presume(ctx context.Context, h *hold, what string) (bool, error) {
	reply, err := c.server.exec.doWithAck(ctx, h.ack, oncePresumeScript, []string{h.keys.lock}, h.id, what)
	return reply == int64(1), err
}

func (c claim) renew(ctx context.Context, h *hold, ttl time.Duration) (bool, error) {
	reply, err := c.server.exec.doWithAck(ctx, h.ack, onceRenewScript, []string{h.keys.lock}, h.renewal(ttl)...)
	return reply == int64(1), err
}

func (c claim) renewAll(renewals []*renewal) {
	calls := make([]*command, 0, 2*len(renewals))
	for _, r := range renewals {
		c := newCommand(onceRenewScript, []string{r.hold.keys.lock}, r.hold.renewal(r.hold.ttl)...)
		c.ack = r.hold.ack
		c.onSend = func() { r.sent.Store(true) }
		c.done = func(c *command) { r.done(c.sentAt, c.reply == int64(1), c.err) }
		if calls = append(calls, c); r.hold.record.group.key != "" {
			calls = append(calls, r.hold.listing())
		}
	}
	c.server.exec.renew(calls)
}

// listing prolongs the place of a running record in its group, behind a renewal. If that fails, the next renewal does it:
// the record was listed for a whole retention, or TTL if that is longer.
func (h *hold) listing() *command {
	c := newCommand(onceEnlistScript, h.record.group.listed(h.keys.lock), h.id,
		counted(h.record.content(h.record.maxValue)))
	c.done = func(*command) {}
	return c
}

// renewal are the arguments of lua/once_renew.lua.
func (h *hold) renewal(ttl time.Duration) []any {
	return []any{h.id, milliseconds(ttl), milliseconds(h.record.retention)}
}

func (claim) queued() *queuedLock { return nil }
