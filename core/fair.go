package core

import "github.com/holdfast-go/holdfast/core/internal/lockscript"

// Fair returns a reentrant lock that is granted in the order of arrival, across all processes. Fair does no I/O; Lock
// and TryLock report a wrong name or option.
//
// The order is that in which requests reach Redis, which numbers them: no clock of a client takes part. Unlocking
// grants the lock to the next waiter at once. A waiter that you cancel leaves the queue at once. A waiter that crashes
// delays the others by some seconds at most. TryLock fails if a waiter is in the queue.
//
// The lock excludes every other strategy on the same name. Only waiters of Fair, [Client.FairRead] and
// [Client.FairWrite] are in its queue: use one strategy for one name. Fair costs a little more than [Client.Mutex],
// which has no order between processes.
func (c *Client) Fair(name string, opts ...LockOption) Locker {
	return c.locker(name, lockscript.Queue{OneRedis: lockscript.OneRedis{Instance: c.server.Instance}, Mode: "fair"}, opts)
}
