package core

import (
	"context"
	"fmt"
	"slices"
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
	return c.locker(name, mutex{oneRedis: oneRedis{c.server}}, opts)
}

// mutex is the protocol of [Client.Mutex].
type mutex struct {
	oneRedis
	restartDelay time.Duration // see [WithRestartDelay]
}

func (m mutex) acquire(ctx context.Context, h *hold) (answer, error) {
	args := []any{h.owner, h.id, milliseconds(h.ttl), milliseconds(tokenMemory), milliseconds(h.minHold)}
	if m.restartDelay > 0 {
		args = append(args, milliseconds(m.restartDelay))
	}
	reply, err := m.server.exec.doAcked(ctx, h.ack, acquireScript,
		[]string{h.keys.lock, h.keys.token, h.keys.released(h.id)}, args...)
	if err != nil {
		return answer{}, err
	}
	list, err := integers(reply, 2, 3)
	switch {
	case err != nil:
		return answer{}, err
	case list[0] == 1:
		return answer{granted: true, token: list[1], settled: list[2] == 1}, nil
	case list[0] == 0:
		return answer{standing: standing{left: time.Duration(list[1]) * time.Millisecond}}, nil
	case list[0] == -2:
		return m.otherwise().acquire(ctx, h)
	case list[0] == -3:
		return answer{}, fmt.Errorf("%w: for %v more it grants no locks", errRestarted,
			time.Duration(list[1])*time.Millisecond)
	default:
		return answer{gone: true}, nil
	}
}

// otherwise is for locks that are not held by a Mutex only: another strategy has them, perhaps of the same owner.
func (m mutex) otherwise() inLine {
	return inLine{oneRedis: m.oneRedis, as: "fair"}
}

func (m mutex) release(ctx context.Context, h *hold, what usage) (bool, error) {
	memory := releaseMemory
	abandoned := 0
	if what == neverUsed {
		memory, abandoned = abandonMemory, 1
	}
	reply, err := m.server.exec.do(ctx, releaseScript,
		[]string{h.keys.lock, h.keys.released(h.id)},
		h.owner, h.id, h.keys.channel, milliseconds(memory), abandoned, m.server.verb)
	if err != nil {
		return false, err
	}
	switch reply {
	case int64(4):
		return m.otherwise().release(ctx, h, what)
	case int64(3):
		m.server.cannotPublish()
	}
	return reply != int64(0), nil
}

func (mutex) line() *inLine { return nil }

// integers reads a reply that is a list of integers, of one of these lengths.
func integers(reply any, lengths ...int) ([]int64, error) {
	list, _ := reply.([]any)
	numbers := make([]int64, 0, len(list))
	for _, element := range list {
		if n, ok := element.(int64); ok {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) != len(list) || !slices.Contains(lengths, len(list)) {
		return nil, fmt.Errorf("holdfast: unexpected reply from Redis: %v", reply)
	}
	return numbers, nil
}
