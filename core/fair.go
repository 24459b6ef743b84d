package core

// Fair returns a reentrant lock that is granted in the order of arrival, across all processes. It does no I/O; what
// is wrong with name or options is reported by Lock and TryLock.
//
// The order is that in which the requests reach Redis, which numbers them: no clock of a client takes part. Whoever
// unlocks grants the lock to the next in line at once. A waiter that is cancelled leaves the line at once; one that
// crashes costs the others some seconds at most. TryLock fails if anybody is in line.
//
// It excludes, and is excluded by, every other strategy on the same name, but only waiters of Fair and of
// [Client.FairRead] and [Client.FairWrite] are in its line: use one kind of lock for one name. It costs a little more
// than [Client.Mutex], which has no order between processes.
func (c *Client) Fair(name string, opts ...LockOption) Locker {
	return c.locker(name, inLine{oneRedis: oneRedis{c.server}, as: "fair"}, opts)
}
