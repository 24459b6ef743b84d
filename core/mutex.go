package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// tokenMemory is how long the last token of a name is remembered. Tokens are microseconds of the server's
	// clock, or one more than the last; so the memory matters only after the clock was set back, and then for
	// names granted less than the step ago.
	tokenMemory = 2 * time.Hour
	// releaseMemory is how long the end of a hold is remembered, which is how late a repeated release may come
	// and still be answered truthfully.
	releaseMemory = 15 * time.Second
	// abandonMemory is the same for a hold of which a request may come late and must then be refused, and for
	// ForceUnlock. Longer, because it is rare.
	abandonMemory = 10 * time.Minute
)

// Refusals of acquire.lua and acquire_all.lua that are no answer about the lock.
var (
	errRestarted     = transport.WithOutcome(errors.New("server restarted recently and may have lost the lock"), transport.NotExecuted)
	errOtherStrategy = transport.WithOutcome(errors.New("held by another strategy than Mutex"), transport.Rejected)
)

// Durations as arguments of scripts.
var (
	tokenMemoryArg   any = milliseconds(tokenMemory)
	releaseMemoryArg any = milliseconds(releaseMemory)
	abandonMemoryArg any = milliseconds(abandonMemory)

	lastTTL atomic.Pointer[ttlText] // mostly it is the same for all
)

type ttlText struct {
	ttl time.Duration
	arg any
}

func ttlArg(ttl time.Duration) any {
	last := lastTTL.Load()
	if last == nil || last.ttl != ttl {
		last = &ttlText{ttl, milliseconds(ttl)}
		lastTTL.Store(last)
	}
	return last.arg
}

// Mutex returns a reentrant lock for one owner at a time. Mutex does no I/O; Lock and TryLock report a wrong name or
// option.
//
// Its state in Redis is that of Redisson's RLock, so Go and Java exclude and wake each other on the same key (see
// [WithPrefix]).
func (c *Client) Mutex(name string, opts ...LockOption) Locker {
	return c.locker(name, c.mutex, opts)
}

// mutex is the protocol of [Client.Mutex].
type mutex struct {
	oneRedis
	restartDelay time.Duration // see [WithRestartDelay]
}

func (m mutex) acquire(ctx context.Context, h *hold) (acquireResult, error) {
	c := new(transport.Command)
	c.Init(acquireScript, 4, h.scriptArgs.lock, h.scriptArgs.token, h.scriptArgs.released, h.scriptArgs.waitingClients,
		h.ownerArg(), h.scriptArgs.id, ttlArg(h.ttl), tokenMemoryArg, milliseconds(h.minHold), milliseconds(m.restartDelay))
	if h.registersClient {
		c.Args = append(c.Args, m.server.keeper.clientNumberArg, h.woken)
	}
	if h.parent != nil {
		if !h.registersClient {
			c.Args = append(c.Args, "", 0)
		}
		c.Args = append(c.Args, h.parentID())
	}
	c.Ack = h.ack
	err := m.server.exec.Run(ctx, c)
	h.countRepeated(c)
	if err != nil {
		return acquireResult{}, err
	}
	if len(c.List) < 2 {
		return acquireResult{}, unexpected(c.List)
	}
	switch c.List[0] {
	case 1:
		before := c.List[len(c.List)-1]
		return acquireResult{granted: true, token: c.List[1], tokenCommitted: before&1 != 0, byParent: before&2 != 0}, nil
	case 0:
		left := time.Duration(c.List[1]) * time.Millisecond
		return acquireResult{tokenCommitted: len(c.List) > 2 && c.List[2] == 1, waitState: waitState{holderTTL: left}}, nil
	case -2:
		h.registersClient = false // queue_acquire.lua does not register waiting clients
		return m.asQueued().acquire(ctx, h)
	case -3:
		return acquireResult{}, fmt.Errorf("%w: for %v more it grants no locks", errRestarted,
			time.Duration(c.List[1])*time.Millisecond)
	default:
		return acquireResult{holdReleased: true}, nil
	}
}

// subscribe subscribes to broadcasts and to the number of this client, see internal/pubsub/wake_one.go.
func (m mutex) subscribe(k keys) releaseSubscription {
	return m.server.subs.SubscribeAsClient(k.channel, k.lock, k.waitingClients)
}

func (m mutex) subscribeIfActive(k keys) releaseSubscription {
	if l := m.server.subs.SubscribeAsClientIfActive(k.channel, k.lock, k.waitingClients); l != nil {
		return l
	}
	return nil
}

// asQueued returns the protocol for a lock that is held by another strategy, perhaps by the same owner.
func (m mutex) asQueued() queuedLock {
	return queuedLock{oneRedis: m.oneRedis, mode: "fair"}
}

func (m mutex) release(ctx context.Context, h *hold, what releaseReason) (bool, error) {
	found, missing := h.releaseMemories(what)
	abandoned := 0
	if what == neverHeld {
		abandoned = 1
	}
	c := new(transport.Command)
	c.Init(releaseScript, 3, h.scriptArgs.lock, h.scriptArgs.released, h.scriptArgs.waitingClients,
		h.ownerArg(), h.scriptArgs.id, found, abandoned, m.server.publishVerbArg)
	if missing != found {
		c.Args = append(c.Args, missing)
	}
	if err := m.server.exec.Run(ctx, c); err != nil {
		return false, err
	}
	switch c.Reply {
	case int64(4):
		return m.asQueued().release(ctx, h, what)
	case int64(3):
		m.server.cannotPublish()
	}
	return c.Reply != int64(0), nil
}

func (mutex) queued() *queuedLock { return nil }

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
		return nil, unexpected(reply)
	}
	return numbers, nil
}

func unexpected(reply any) error {
	return fmt.Errorf("holdfast: unexpected reply from Redis: %v", reply)
}
