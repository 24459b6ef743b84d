package core

// Mutex returns a reentrant lock for one owner at a time. Mutex does no I/O; Lock and TryLock report a wrong name or
// option.
//
// Its state in Redis is that of Redisson's RLock, so Go and Java exclude and wake each other on the same key (see
// [WithPrefix]).
func (c *Client) Mutex(name string, opts ...LockOption) Locker {
	return c.locker(name, c.mutex, opts)
}
