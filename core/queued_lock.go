package core

import (
	"context"
	"fmt"
	"time"
)

const (
	// placeTTL is how long Redis keeps the place of a waiter without heartbeats, and the TTL of a grant by message until
	// the first renewal. So it is the delay that a crashed waiter causes to the others.
	placeTTL = 5 * time.Second
	// heartbeatInterval is how often the heartbeats of a waiter are sent.
	heartbeatInterval = time.Second
)

// queuedLock is the protocol of the strategies with a queue in Redis. The script that releases the lock grants it to the
// next waiter, and notifies only that one. See lua/queue_common.lua.
type queuedLock struct {
	oneRedis
	mode string // in Redis: fair, writing or reading
	// readersNext is true if all readers that wait at the end of a write go before the next writer.
	readersNext bool
}

func (p queuedLock) queued() *queuedLock { return &p }

// channel returns the channel of this client for the lock. Each message on it is addressed to one of its waiters.
func (p queuedLock) channel(k keys) string { return k.channel + ":" + p.server.keeper.id }

func (p queuedLock) acquire(ctx context.Context, h *hold) (acquireResult, error) {
	h.shares = p.mode == "reading"
	waits := 0
	if h.mayQueue {
		waits = 1
	}
	reply, err := h.do(ctx, p.server.exec, queueAcquireScript, h.keys.queueKeys(h.released), p.server.queueArgs(h.keys,
		h.owner, h.id, milliseconds(h.ttl), milliseconds(h.minHold), p.mode, waits, h.queueNumber, h.parentID())...)
	if err != nil {
		return acquireResult{}, err
	}
	list, err := integers(reply, 1, 2, 6)
	switch {
	case err != nil:
		return acquireResult{}, err
	case list[0] == 1:
		return acquireResult{granted: true, token: list[1]}, nil
	case list[0] == -1:
		return acquireResult{holdReleased: true}, nil
	case list[0] == -2:
		return acquireResult{refused: fmt.Errorf("%w: %q", ErrUpgrade, h.name)}, nil
	}
	h.queueNumber = list[3]
	return acquireResult{waitState: waitState{
		holderTTL: time.Duration(list[1]) * time.Millisecond, ahead: int(list[2]), lastToken: list[4], broadcasts: list[5] == 1,
	}}, nil
}

func (p queuedLock) release(ctx context.Context, h *hold, what releaseReason) (bool, error) {
	found, missing := h.releaseMemories(what)
	abandoned, readersNext := 0, 0
	if what != heldByCaller {
		abandoned = 1
	}
	if p.readersNext {
		readersNext = 1
	}
	reply, err := p.server.exec.Do(ctx, queueReleaseScript, h.keys.queueKeys(h.released), p.server.queueArgs(h.keys,
		h.owner, h.id, found, abandoned, readersNext, missing)...)
	if err != nil {
		return false, err
	}
	list, err := integers(reply, 2)
	if err != nil {
		return false, err
	}
	if list[1] == 1 {
		p.server.cannotPublish()
	}
	return list[0] == 1, nil
}

// queueKeys returns the keys of queue_common.lua and the one that comes after them.
func (k keys) queueKeys(more ...string) []string {
	return append([]string{k.lock, k.token, k.shareExpiries(), k.exclusiveQueue(), k.sharedQueue(), k.waiters()}, more...)
}

// queueArgs returns the arguments of queue_common.lua and those that come after them.
func (s *server) queueArgs(k keys, more ...any) []any {
	return append([]any{k.channel, milliseconds(tokenMemory), milliseconds(placeTTL), s.publishVerb}, more...)
}
