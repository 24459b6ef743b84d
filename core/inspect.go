package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// maxInspected bounds how many holds and how many waiters an [Info] has: while a server reads them, it does nothing else.
const maxInspected = 1000

// Info is the state of a lock at one instant. Its size is bounded, however many owners hold the lock or wait: Holders has at most
// the 1,000 shared holds that last longest, and Queue the first 1,000 waiters. Shares and Places count them all.
type Info struct {
	// Name of the lock.
	Name string
	// Mode is empty if the lock is free. It is [ModeElection] if a leader has proclaimed itself there, and [ModeMutex] on each
	// server of a [Redlock].
	Mode Mode
	// Holders are sorted by owner. There are none while a lock stays taken only for its [WithMinHold]. With more than
	// 1,000 of them, waiters of a foreign client are left out.
	Holders []Holder
	// Shares counts the shared holds, and what stays taken for [WithMinHold].
	Shares int
	// TTL is the time after which the lock becomes free if it is not renewed. It is zero if the lock is free. It is
	// negative if the lock never becomes free, which only a foreign client can cause.
	TTL time.Duration
	// Waiters counts the clients that have listened for a release within the last seconds. Each may wait for several
	// of its goroutines. It is -1 if Redis refuses the question. In a Cluster older than Redis 7 it counts those that
	// listen at the node that was asked. Of the waiters in the queue it counts at most the first.
	Waiters int
	// Queue has the waiters in order. It is empty for [Client.Mutex], which has no queue.
	Queue []Waiter
	// Places counts the places in the queue, including places of waiters that have just crashed.
	Places int
	// Value is what the leader has proclaimed, see [WithValue].
	Value string
}

// Waiter is a place in the queue of a lock.
type Waiter struct {
	// Owner is the future owner of the lock.
	Owner string
	// Instance identifies the owner's client, see [Holder].
	Instance string
	// Mode is how the owner will hold the lock. It is [ModeFair] for a candidate of an election.
	Mode Mode
	// Permits are those that the owner waits for, and Limit is its n of the [Client.Semaphore]; 0 for other locks.
	Permits, Limit int
}

// Holder is one owner of a lock.
type Holder struct {
	// Owner as it is stored in Redis: "<UUID of the client>:<number>", or the one set by [WithOwner]. Calls with
	// equal owners do not exclude each other.
	Owner string
	// Instance identifies the owner's client, see [WithInstance]; "" if it is unknown, or if WithOwner has named the owner.
	Instance string
	// Holds counts the owner's entries.
	Holds int
	// TTL is the rest of the owner's lease if it is not renewed.
	TTL time.Duration
	// Token is the fencing token of the grant; 0 if a Redisson client holds the lock. If a [Client.Mutex] was handed over inside a
	// process, it is that of the first holder.
	Token int64
	// Granted is when the lock was granted, by the server's clock, to within 10 ms; zero if a Redisson client holds it.
	Granted time.Time
	// Permits of a [Client.Semaphore], and Limit, the n with which they were granted; 0 for other locks.
	Permits, Limit int
	// Slot is the slot of the first permit, see [Lease.Slot].
	Slot int
}

// Inspect reads the state of the lock of that name, for operators and tests. The answer may be outdated when it
// arrives. Inspect changes nothing.
func (c *Client) Inspect(ctx context.Context, name string) (Info, error) {
	var info Info
	err := c.operateOn(ctx, "inspect lock", name, func(k script.Keys) error {
		state, err := c.server.State(ctx, k, maxInspected)
		if err != nil {
			return err
		}
		info = newInfo(state)
		info.Name = name
		c.addInstances(ctx, info)
		return nil
	})
	return info, err
}

// newInfo returns the state of a lock, without its name.
func newInfo(state script.State) Info {
	info := Info{
		Mode: Mode(state.Mode), Shares: state.Shares, TTL: state.TTL, Waiters: state.Waiters, Places: state.Places,
		Value: state.Value,
	}
	if state.Election {
		info.Mode = ModeElection
	}
	for _, h := range state.Holders {
		info.Holders = append(info.Holders, Holder{
			Owner: h.Owner, Holds: h.Holds, TTL: h.TTL, Token: h.Token, Granted: h.Granted, Permits: h.Permits, Limit: h.Limit, Slot: h.Slot,
		})
	}
	for _, w := range state.Queue {
		info.Queue = append(info.Queue, Waiter{Owner: w.Owner, Mode: Mode(w.Mode), Permits: w.Permits, Limit: w.Limit})
	}
	return info
}
