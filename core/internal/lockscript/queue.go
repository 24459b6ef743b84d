package lockscript

import (
	"context"
	"errors"
	"time"
)

const (
	// PlaceTTL is how long Redis keeps the place of a waiter without heartbeats. It is also the TTL of a grant by message,
	// until the first renewal. So it is the delay that a crashed waiter causes to the others.
	PlaceTTL = 5 * time.Second
	// HeartbeatInterval is how often the heartbeats of a waiter are sent: several may get lost within PlaceTTL.
	HeartbeatInterval = time.Second
)

// errUpgrade refuses a write lock to an owner that holds the read side. Why: the owner would wait for itself.
var errUpgrade = errors.New("read lock cannot be upgraded")

// Queue is the [Strategy] of locks with a queue in Redis. The script that releases the lock grants it to the next waiter, and
// notifies only that one. See lua/queue_common.lua.
type Queue struct {
	OneRedis
	Mode string // as in Redis: fair, writing or reading
	// ReadersNext is true if all readers that wait at the end of a write go before the next writer.
	ReadersNext bool
}

// QueueOf returns the strategy as a Queue if its waiters are in a queue in Redis. It returns nil for other strategies, whose
// lock is granted to the first request after a release.
func QueueOf(s Strategy) *Queue {
	if q, ok := s.(Queue); ok {
		return &q
	}
	return nil
}

// Channel returns the channel of this client for the lock. Each message on it has the hold ID of one waiter as its address.
func (q Queue) Channel(k Keys) string { return k.Channel + ":" + q.IDs.Client }

// Acquire implements [Strategy]. If the hold is not granted and MayQueue is true, it is in the queue afterwards, and h has its
// number.
func (q Queue) Acquire(ctx context.Context, h *Hold) (Result, error) {
	h.Shares = q.Mode == "reading"
	mayQueue := 0
	if h.MayQueue {
		mayQueue = 1
	}
	reply, err := h.Do(ctx, q.Exec, QueueAcquireScript, h.Keys.queueKeys(h.Released), q.queueArgs(h.Keys,
		h.Owner, h.ID, Milliseconds(h.TTL), Milliseconds(h.MinHold), q.Mode, mayQueue, h.QueueNumber, h.ParentID)...)
	if err != nil {
		return Result{}, err
	}
	list, err := Integers(reply, 1, 2, 6)
	switch {
	case err != nil:
		return Result{}, err
	case list[0] == 1:
		return Result{Granted: true, Token: list[1]}, nil
	case list[0] == -1:
		return Result{HoldReleased: true}, nil
	case list[0] == -2:
		return Result{Refused: errUpgrade}, nil
	}
	h.QueueNumber = list[3]
	return Result{WaitState: WaitState{
		HolderTTL: time.Duration(list[1]) * time.Millisecond, Ahead: int(list[2]), LastToken: list[4], Broadcasts: list[5] == 1,
	}}, nil
}

// Release implements [Strategy]. The script grants the lock to the next waiters.
func (q Queue) Release(ctx context.Context, h *Hold, what ReleaseReason) (bool, error) {
	found, missing := h.ReleaseMemories(what)
	abandoned, readersNext := 0, 0
	if what != HeldByCaller {
		abandoned = 1
	}
	if q.ReadersNext {
		readersNext = 1
	}
	reply, err := q.Exec.Do(ctx, QueueReleaseScript, h.Keys.queueKeys(h.Released), q.queueArgs(h.Keys,
		h.Owner, h.ID, found, abandoned, readersNext, missing)...)
	if err != nil {
		return false, err
	}
	list, err := Integers(reply, 2)
	if err != nil {
		return false, err
	}
	if list[1] == 1 {
		q.PublishRefused()
	}
	return list[0] == 1, nil
}

// queueKeys returns the keys of queue_common.lua and those that come after them.
func (k Keys) queueKeys(more ...string) []string {
	return append([]string{k.Lock, k.Token, k.ShareExpiries(), k.ExclusiveQueue(), k.SharedQueue(), k.Waiters()}, more...)
}
