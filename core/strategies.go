package core

import "github.com/holdfast-go/holdfast/core/internal/script"

// Mutex returns a reentrant lock for one owner at a time. Mutex does no I/O; Lock and TryLock report a wrong name or
// option.
//
// Its state in Redis is that of Redisson's RLock, so Go and Java exclude and wake each other on the same key (see
// [WithPrefix]).
func (c *Client) Mutex(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.mutex, opts).lock
}

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
func (c *Client) Fair(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.queue("fair"), opts).lock
}

// Read returns the read side of a read-write lock: any number of owners hold it at once, but none while the lock is
// held for writing. Read does no I/O; Lock and TryLock report a wrong name or option.
//
// Turns are those of [sync.RWMutex]. A waiting writer holds back new readers, and the readers that waited while it
// wrote go before the next writer. So neither side starves the other. Writers get the lock in the order of arrival,
// across all processes. After a writer that crashed, or was forced out, the order of arrival applies to all.
//
// Both sides are reentrant. An owner that writes may also read, and may then unlock the write side first, which lets
// the waiting readers in at once. An owner that reads cannot write: it gets [ErrUpgrade], because it would wait for
// itself. Reading again never waits.
//
// Every hold has its own TTL. A crashed reader blocks writers until its own TTL expires, whatever other readers do.
//
// The lock excludes every other strategy on the same name.
func (c *Client) Read(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.queue("reading"), opts).lock
}

// Write returns the write side of a read-write lock: one owner holds it, and no owner holds the read side meanwhile.
// See [Client.Read].
func (c *Client) Write(name string, opts ...LockOption) *Lock {
	writing := c.queue("writing")
	writing.ReadersNext = true
	return &c.newLock(name, writing, opts).lock
}

// FairRead returns the read side of a read-write lock that follows strictly the order of arrival, with neighbouring
// readers together. Otherwise it is [Client.Read].
func (c *Client) FairRead(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.queue("reading"), opts).lock
}

// FairWrite returns the write side of a read-write lock that follows strictly the order of arrival. See
// [Client.FairRead].
func (c *Client) FairWrite(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.queue("writing"), opts).lock
}

// queue returns the strategy of a lock with a queue in Redis. That of readers is the same for both kinds: which waiter follows a
// writer is decided when the write ends.
func (c *Client) queue(mode string) script.Queue {
	return script.Queue{Instance: c.server.Instance, Mode: mode}
}
