package core

import (
	"context"
	"fmt"
	"time"
)

const (
	// tokenMemory is how long the last token of a name is remembered. Tokens are microseconds of the server's
	// clock, or one more than the last; so the memory matters only after the clock was set back, and then for
	// names granted less than the step ago.
	tokenMemory = 2 * time.Hour
	// releaseMemory is how long the end of a hold is remembered, which is how late a repeated release may come
	// and still be answered truthfully.
	releaseMemory = 15 * time.Second
	// abandonMemory is the same for a hold that was given up, whose acquire may come late and must then be
	// refused, and for ForceUnlock. Longer, because it is rare.
	abandonMemory = 10 * time.Minute
)

// Mutex returns a reentrant lock: whoever holds it, enters it again. It does no I/O; what is wrong with name
// or options is reported by Lock and TryLock.
//
// Its state in Redis is that of Redisson's RLock, so Go and Java exclude and wake each other on the same key
// (see [WithPrefix]).
func (c *Client) Mutex(name string, opts ...LockOption) Locker {
	return c.locker(name, mutex{client: c}, opts)
}

// mutex is the protocol of [Client.Mutex].
type mutex struct {
	client *Client
}

func (m mutex) acquire(ctx context.Context, h *hold) (answer, error) {
	reply, err := m.client.exec.do(ctx, acquireScript,
		[]string{h.keys.lock, h.keys.token, h.keys.released(h.id)},
		h.owner, h.id, milliseconds(h.ttl), milliseconds(tokenMemory), milliseconds(h.minHold))
	if err != nil {
		return answer{}, err
	}
	status, value, err := pair(reply)
	switch {
	case err != nil:
		return answer{}, err
	case status == 1:
		return answer{granted: true, token: value}, nil
	case status == 0:
		return answer{left: time.Duration(value) * time.Millisecond}, nil
	default:
		return answer{gone: true}, nil
	}
}

func (m mutex) release(ctx context.Context, h *hold, what usage) (bool, error) {
	memory := releaseMemory
	abandoned := 0
	if what == neverUsed {
		memory, abandoned = abandonMemory, 1
	}
	reply, err := m.client.exec.do(ctx, releaseScript,
		[]string{h.keys.lock, h.keys.released(h.id)},
		h.owner, h.id, h.keys.channel, milliseconds(memory), abandoned)
	if err != nil {
		return false, err
	}
	if reply == int64(3) {
		m.client.warnOnce(&m.client.unheard, "Redis refuses PUBLISH to this user: "+
			"waiters learn of releases by polling only", "channel", "redisson_lock__channel*")
	}
	return reply != int64(0), nil
}

func (m mutex) renew(ctx context.Context, h *hold, ttl time.Duration) (bool, error) {
	reply, err := m.client.exec.do(ctx, renewScript, []string{h.keys.lock}, h.id, milliseconds(ttl))
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

func (m mutex) renewAll(renewals []*renewal) {
	calls := make([]*call, len(renewals))
	for i, r := range renewals {
		calls[i] = &call{
			ctx:    context.Background(),
			script: renewScript,
			keys:   []string{r.hold.keys.lock},
			args:   []any{r.hold.id, milliseconds(r.hold.ttl)},
			board:  func() { r.sent.Store(true) },
			done:   func(c *call) { r.done(c.sentAt, c.reply == int64(1), c.err) },
		}
	}
	m.client.exec.renew(calls)
}

func (mutex) channel(k keys) string { return k.channel }

// pair reads a reply of two integers.
func pair(reply any) (first, second int64, err error) {
	list, _ := reply.([]any)
	if len(list) == 2 {
		var ok, ok2 bool
		first, ok = list[0].(int64)
		second, ok2 = list[1].(int64)
		if ok && ok2 {
			return first, second, nil
		}
	}
	return 0, 0, fmt.Errorf("holdfast: unexpected reply from Redis: %v", reply)
}
