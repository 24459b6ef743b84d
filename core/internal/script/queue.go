package script

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// PlaceTTL is how long Redis keeps the place of a waiter without heartbeats. It is also the TTL of a grant by message,
	// until the first renewal. So it is the delay that a crashed waiter causes to the others.
	PlaceTTL = 5 * time.Second
	// HeartbeatInterval is how often the heartbeats of a waiter are sent: several may get lost within PlaceTTL.
	HeartbeatInterval = time.Second
)

// upgradeRefused refuses a write lock to an owner that holds the read side, because the owner would wait for itself.
var upgradeRefused = &Refusal{Kind: Upgrade}

// Queue is the [Strategy] of locks with a queue in Redis. The script that releases the lock grants it to the next waiter, and
// notifies only that one. See lua/lock/queue_common.lua.
type Queue struct {
	*Instance
	Mode string // as in Redis: fair, writing, reading or semaphore
	// ReadersNext is true if all readers that wait at the end of a write go before the next writer.
	ReadersNext bool
	// Observed is true for an election, whose observers are notified of each release.
	Observed bool
}

// Bounds of semaphores. Scripts have the same in lua/lock/permits.lua.
const (
	// MaxLimit is the largest number of permits that a semaphore may have, so that its state fits into a sorted set that Redis handles
	// in no time. An owner keeps its slot if a later request has a smaller limit, see Hold.Slots.
	MaxLimit = 1_000_000
	// MaxPermits is the largest number of permits of one hold, because one script writes them all.
	MaxPermits = 1_000
)

// GrantChannel returns the channel of this client for a lock with a queue. Each message on it has the hold ID of one waiter as its
// address.
func (i *Instance) GrantChannel(k Keys) string { return k.Channel + ":" + i.IDs.Client }

// queueArgs are the keys of a lock and its channel as arguments of the scripts with queue_common.lua.
type queueArgs struct{ shareExpiries, exclusiveQueue, sharedQueue, waiters, slots, channel any }

func newQueueArgs(k Keys) *queueArgs {
	return &queueArgs{k.ShareExpiries(), k.ExclusiveQueue(), k.SharedQueue(), k.Waiters(), k.Slots(), k.Channel}
}

// initQueue makes a command that runs a script with queue_common.lua. The keys between are those before the last one.
func (i *Instance) initQueue(c *transport.Command, s *transport.Script, lock any, q *queueArgs, between []any, args ...any) {
	name, _ := lock.(string)
	c.Init(s, 7+len(between), lock, i.TokenKeys.arg(name), q.shareExpiries, q.exclusiveQueue, q.sharedQueue, q.waiters)
	c.Args = append(append(c.Args, between...), q.slots, q.channel, i.PublishVerbArg)
	c.Args = append(c.Args, args...)
}

// queueArgs returns the arguments of the lock of the hold.
func (h *Hold) queueArgs() *queueArgs {
	if h.Args.queue == nil {
		h.Args.queue = newQueueArgs(h.Keys)
	}
	return h.Args.queue
}

// Name implements [Strategy].
func (q Queue) Name() string {
	switch {
	case q.Observed:
		return "election"
	case q.Mode == "reading":
		return "read"
	case q.Mode == "writing":
		return "write"
	}
	return q.Mode
}

// Abilities implements [Strategy].
func (q Queue) Abilities() Abilities { return Abilities{Queue: q.Instance} }

// Acquire implements [Strategy]. If the hold is not granted and want.Place is true, it is in the queue afterwards, and h has its
// number.
func (q Queue) Acquire(ctx context.Context, h *Hold, want Wanted) (Result, error) {
	h.Shares = q.Mode == "reading" || h.Limit > 0
	tokenKey := q.TokenKeys.arg(h.Keys.Lock)
	c := new(transport.Command)
	q.initQueue(c, queueAcquireScript, h.Args.lock, h.queueArgs(), []any{h.Args.released},
		h.ownerArg(), ttlArg(h.TTL), q.modeArg(h), want.Place)
	optional := [...]any{h.idArg(), h.QueueNumber, Milliseconds(h.MinHold), h.ParentID}
	c.Args, c.Ack = append(c.Args, trimDefaults(optional[:])...), h.Ack
	err := q.Exec.Run(ctx, c)
	h.countRepeated(c)
	if q.TokenKeys.learnSlots(err, h.Keys.Lock, tokenKey) {
		return q.Acquire(ctx, h, want)
	}
	if err != nil {
		return Result{}, err
	}
	result, number, err := readQueueReply(c.Reply, h.Slots())
	if err != nil {
		return Result{}, err
	}
	if number > 0 {
		h.QueueNumber = number
	}
	return result, nil
}

// Slots returns how many slots a request for the hold may be granted one of, 0 if the lock has none. An owner that may
// have had permits before keeps its slot, and a request with a larger limit may have got it.
func (h *Hold) Slots() int {
	switch {
	case h.Limit == 0 || h.Owner == h.ID:
		return h.Limit
	default:
		return MaxLimit
	}
}

// readQueueReply returns what a reply of queue_acquire.lua to a request for one of so many slots says, and the number of the caller
// in the queue, 0 if it has none.
func readQueueReply(reply any, slots int) (result Result, number int64, err error) {
	if _, compact := reply.(int64); compact {
		token, err := readStatus(reply, leastToken, TokenLimit)
		return Result{Granted: err == nil, Grant: Grant{Token: token, Compact: true}}, 0, err
	}
	d := newDecoder(reply)
	switch d.Int(upgrade, granted) {
	case granted:
		result.Granted, result.Token = true, d.Token()
		if d.Len() > 0 {
			result.Slot = int(d.Int(1, int64(slots)-1))
		}
	case refused:
		result.HolderTTL, result.Ahead = d.TTL(), int(d.Int(0, math.MaxInt32))
		number, result.LastToken = d.Int(0, maxExact), d.Int(0, TokenLimit)
		result.Broadcasts, result.Holder = d.Bool(), d.Text()
	case wasReleased:
		result.HoldReleased = true
	case upgrade:
		result.Refused = upgradeRefused
	}
	if err := d.End(); err != nil {
		return Result{}, 0, err
	}
	return result, number, nil
}

// modeArg returns the mode as an argument of scripts, see lua/lock/permits.lua.
func (q Queue) modeArg(h *Hold) any {
	if h.Limit == 0 {
		return q.Mode
	}
	return semaphoreMode(h.Limit, h.Permits)
}

// semaphoreMode returns the mode of a request for permits of a semaphore with that limit, see lua/lock/permits.lua.
func semaphoreMode(limit, permits int) string { return fmt.Sprintf("semaphore:%d:%d", limit, permits) }

// Release implements [Strategy]. The script grants the lock to the next waiters.
func (q Queue) Release(ctx context.Context, h *Hold, what ReleaseReason) (bool, error) {
	return q.release(ctx, h, what, h.Compact)
}

// release is Release of a hold that is, or is not, expected in the compact state.
func (q Queue) release(ctx context.Context, h *Hold, what ReleaseReason, compact bool) (bool, error) {
	found, missing := q.releaseMemoryArgs(h, what)
	c, optional := new(transport.Command), [...]any{h.idArg(), found, what != HeldByCaller, missing}
	if n := len(trimDefaults(optional[:])); n == 0 && compact {
		q.initCompactRelease(c, queueReleaseScript, h)
	} else {
		q.initQueue(c, queueReleaseScript, h.Args.lock, h.queueArgs(), []any{h.Args.released}, h.ownerArg(), q.ReadersNext)
		c.Args = append(c.Args, optional[:n]...)
	}
	if err := h.sendRelease(ctx, q.Exec, c); err != nil {
		return false, err
	}
	status, err := readStatus(c.Reply, 0, notCompact)
	if err != nil {
		return false, err
	}
	if status == notCompact {
		return q.release(ctx, h, what, false)
	}
	if status >= 2 {
		q.PublishRefused()
	}
	if q.Observed {
		q.announce(h.Keys)
	}
	if status%2 == 0 {
		return q.wasReleased(ctx, h)
	}
	return true, nil
}

// Heartbeat returns the command that keeps the places of holds with these IDs in the queue of a lock for PlaceTTL more.
func (i *Instance) Heartbeat(k Keys, ids ...any) *transport.Command {
	c := new(transport.Command)
	i.initQueue(c, queueHeartbeatScript, k.Lock, newQueueArgs(k), nil, ids...)
	return c
}

// ReadHeartbeat returns what the reply to a heartbeat of so many places says of the lock. ahead has the number of waiters before each
// place, or -1 if the waiter has to send its request again.
func ReadHeartbeat(reply any, places int) (state WaitState, ahead []int, err error) {
	d := newDecoder(reply)
	state.HolderTTL, state.LastToken, state.Broadcasts = d.TTL(), d.Int(0, TokenLimit), d.Bool()
	for range places {
		ahead = append(ahead, int(d.Int(-1, math.MaxInt32)))
	}
	state.Holder = d.Text()
	return state, ahead, d.End()
}
